"""Only permissive licences pass, whoever states them."""

from email.message import Message

import pytest

from mercury_training.corpus import licences

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person\nobtaining a copy of"
BSD3 = (
    "Redistribution and use in source and binary forms, with or without ... names of contributors to endorse or promote"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MIT, "MIT"),
        (BSD3, "BSD-3-Clause"),
        (BSD3.partition(" ...")[0], "BSD-2-Clause"),
        ("                Apache License\n          Version 2.0, January 2004", "Apache-2.0"),
        ("GNU GENERAL PUBLIC LICENSE\n Version 3", None),
        ("Mozilla Public License Version 2.0", None),
        ("Business Source License 1.1", None),
        ("All rights reserved.", None),
        (MIT + "\n\nBundled: GNU General Public License", "MIT"),
        ("GNU Lesser General Public License\n\n" + MIT, None),
        ("# Permission is hereby granted, free of charge, to\n# any person obtaining a copy", "MIT"),
    ],
)
def test_licence_is_recognised_by_its_opening_words(text, expected):
    assert licences.identify(text) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", "MIT"),
        ("mit", "MIT"),
        ("MIT OR Apache-2.0", "MIT"),
        ("GPL-2.0-only OR BSD-3-Clause", "BSD-3-Clause"),
        ("MIT AND MPL-2.0", None),
        ("Apache-2.0 AND BSD-2-Clause", "Apache-2.0 AND BSD-2-Clause"),
        ("Apache-2.0 WITH LLVM-exception", "Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("MIT/Apache-2.0", "MIT"),
        ("MIT AND Apache-2.0 AND MIT", "MIT AND Apache-2.0"),
        ("(MIT OR GPL-3.0-only) AND MPL-2.0", None),
        ("(MIT OR Apache-2.0) AND ISC", "MIT AND Apache-2.0 AND ISC"),
        ("Proprietary", None),
        ("", None),
    ],
)
def test_licence_expression_needs_all_of_and_or_any_of_or(expression, expected):
    assert licences.permitted(expression) == expected


@pytest.mark.parametrize(
    ("fields", "texts", "expected"),
    [
        ({"License-Expression": "ISC"}, {}, "ISC"),
        ({"License-Expression": "MPL-2.0 AND MIT", "License": "MIT"}, {}, None),
        ({"License": "BSD"}, {}, "BSD-3-Clause"),
        ({"License": MIT * 3}, {}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: MIT License", "License": "see file"}, {}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: GNU General Public License v3 (GPLv3)"}, {}, None),
        ({}, {"LICENSE": MIT * 3}, "MIT"),
        ({}, {}, None),
    ],
)
def test_metadata_is_read_from_the_most_exact_field(fields, texts, expected):
    metadata = Message()
    for name, value in fields.items():
        metadata[name] = value
    assert licences.of_metadata(metadata, texts) == expected


def test_folder_is_spoiled_by_one_licence_file_that_is_not_permissive():
    copyleft = "GNU General Public License " * 20
    assert licences.of_texts([MIT * 3, BSD3 * 3]) == "BSD-3-Clause OR MIT"
    assert licences.of_texts([MIT * 3, copyleft]) is None
    assert licences.of_texts([]) is None


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("import os\n", "MIT"),
        ("# SPDX-License-Identifier: BSD-2-Clause\nimport os\n", "BSD-2-Clause"),
        ("/* SPDX-License-Identifier: GPL-2.0 */\n", None),
        ("# This is free software under the GNU General Public License\n", None),
    ],
)
def test_file_header_outweighs_its_folder(head, expected):
    assert licences.of_file(head, "MIT") == expected
