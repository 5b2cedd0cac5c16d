"""Which licence a text, an expression or a package's metadata names, and whether it allows training: permissive
only."""

import re
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message

PERMISSIVE = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause", "BSL-1.0", "CC0-1.0", "HPND", "ISC"),
        *("MIT", "MIT-0", "MIT-CMU", "NCSA", "PostgreSQL", "PSF-2.0", "Python-2.0", "Unlicense", "WTFPL", "Zlib"),
        *("curl", "Vim"),
    }
)

WORDINGS = (
    ("Apache-2.0", "apache license version 2.0"),
    ("MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"),
    ("BSD-3-Clause", "redistribution and use in source and binary forms"),
    ("HPND", "permission to use, copy, modify, and distribute this software and its documentation"),
    ("ISC", "permission to use, copy, modify, and/or distribute this software"),
    ("ISC", "permission to use, copy, modify, and distribute this software for any purpose"),
    ("PSF-2.0", "python software foundation license"),
    ("Unlicense", "this is free and unencumbered software released into the public domain"),
    ("Zlib", "altered source versions must be plainly marked as such"),
    ("BSL-1.0", "boost software license"),
    ("CC0-1.0", "cc0 1.0 universal"),
    ("", "gnu general public license"),
    ("", "gnu lesser general public license"),
    ("", "gnu library general public license"),
    ("", "gnu affero general public license"),
    ("", "mozilla public license"),
    ("", "eclipse public license"),
    ("", "server side public license"),
    ("", "business source license"),
    ("", "elastic license"),
    ("", "commons clause"),
    ("", "attribution-noncommercial"),
    ("", "attribution-sharealike"),
)
"""The wording that identifies each licence; the first one in a text counts, since bundled ones follow it."""

CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "zlib/libpng License": "Zlib",
}

PLAIN_NAMES = {
    **dict.fromkeys(("apache", "apache 2", "apache 2.0", "apache license 2.0", "apache-2"), "Apache-2.0"),
    **dict.fromkeys(
        ("apache license, version 2.0", "apache license version 2.0", "apache software license"), "Apache-2.0"
    ),
    **dict.fromkeys(("bsd", "bsd license", "bsd 3-clause", "bsd-3", "new bsd", "3-clause bsd license"), "BSD-3-Clause"),
    **dict.fromkeys(("mit license", "the mit license", "expat"), "MIT"),
    **dict.fromkeys(("psf", "psf license"), "PSF-2.0"),
    "isc license": "ISC",
}

LICENCE_FILE = re.compile(r"(un)?licen[cs]e|copying", re.IGNORECASE)
SPDX_TAG = re.compile(r"SPDX-License-Identifier:\s*([\w.()+\- ]+)")
COPYLEFT = re.compile(r"(general|mozilla|eclipse) public licen[cs]e|all rights reserved\W+proprietary", re.IGNORECASE)


def is_licence_file(name: str) -> bool:
    return LICENCE_FILE.match(name) is not None and not name.endswith(
        (".py", ".go", ".rs", ".ts", ".js", ".java", ".c")
    )


def identify(text: str) -> str | None:
    """The SPDX name of the licence that a text opens with, if it is a permissive one."""
    plain = re.sub(r"[\s,*#/]+", " ", text.lower())
    places = [(plain.find(re.sub(r"[\s,*#/]+", " ", wording)), name) for name, wording in WORDINGS]
    place = min((place for place in places if place[0] >= 0), default=(0, ""))[1]
    if place == "BSD-3-Clause" and "endorse or promote" not in plain:
        return "BSD-2-Clause"
    return place or None


def permitted(expression: str) -> str | None:
    """The licence under which an SPDX expression permits training: all of AND, any of OR.

    If it has brackets, every name must be permissive: that is stricter than the expression, and never wrong.
    """
    expression = PLAIN_NAMES.get(expression.strip().lower(), expression)
    if "(" in expression:
        expression = re.sub(r"\s+or\s+", " AND ", re.sub(r"[()]", " ", expression), flags=re.IGNORECASE)
    by_name = {name.lower(): name for name in PERMISSIVE}
    for choice in re.split(r"\s+or\s+|/", expression, flags=re.IGNORECASE):
        parts = re.split(r"\s+and\s+", choice, flags=re.IGNORECASE)
        names = [re.split(r"\s+with\s+", part.strip(), flags=re.IGNORECASE)[0].lower() for part in parts]
        if all(name in by_name for name in names):
            return " AND ".join(by_name[name] for name in dict.fromkeys(names))
    return None


def of_texts(texts: Iterable[str]) -> str | None:
    """The licence of a folder with these licence files; None if any of them is not permissive."""
    licences = [identify(text) for text in texts if len(text) > 200]
    return _any_of(licences) if licences else None


def _any_of(licences: Sequence[str | None]) -> str | None:
    """One expression of these licences; None if any of them is not permissive."""
    permissive = {licence for licence in licences if licence}
    return " OR ".join(sorted(permissive)) if all(licences) else None


def of_metadata(metadata: Message, texts: Mapping[str, str]) -> str | None:
    """The licence of a Python distribution: its expression, classifiers, field or files, in this order."""
    if expression := metadata.get("License-Expression"):
        return permitted(expression)
    classifiers = [
        value.rpartition(" :: ")[2]
        for value in metadata.get_all("Classifier", [])
        if value.startswith("License :: OSI Approved ::")
    ]
    if classifiers:
        licences = [CLASSIFIERS.get(classifier) for classifier in classifiers]
        return _any_of(licences)
    stated = metadata.get("License", "")
    if stated:
        return permitted(stated) if len(stated) < 200 else identify(stated)
    return of_texts(texts.values())


def of_file(text: str, inherited: str) -> str | None:
    """A file's own licence if its head names one, else that of its folder."""
    head = text[:3000]
    if tag := SPDX_TAG.search(head):
        return permitted(tag[1].strip().removesuffix("--").strip())
    return None if COPYLEFT.search(head) else inherited
