"""Which files are not worth training on: secrets, generated, vendored, minified, data, or broken."""

import re
from pathlib import PurePosixPath

from mercury_training.corpus.syntax import parser

LARGEST = 300_000
SMALLEST = 80
LONGEST_LINE = 1000
LONGEST_MEAN = 100

VENDORED = frozenset(
    {
        *("vendor", "vendored", "_vendor", "_vendored", "third_party", "thirdparty", "third-party", "node_modules"),
        *("external", "extern", "externals", "deps", "site-packages", "bower_components", "dist", "generated", "gen"),
        *(
            "__snapshots__",
            "snapshots",
            "testdata",
            "fixtures",
            "locale",
            "locales",
            "i18n",
            "translations",
            "_generated",
        ),
    }
)
GENERATED_NAME = re.compile(
    r"\.min\.|[-.]bundle\.|_pb2(_grpc)?\.pyi?$|\.pb\.(go|cc|h)$|(^|/)zz_generated|\.gen\.|\.generated\.|_generated\."
    r"|package-lock|(^|/)(pnpm-lock|yarn)\b|\.lock$|changelog|changes\.md|(^|/)parsetab\.py"
    r"|\.snap$|authors|contributors|release[-_]?notes",
    re.IGNORECASE,
)
GENERATED_HEAD = re.compile(
    r"@generated|auto[- ]?generated|code generated|machine generated|generated (by|from|with|automatically)"
    r"|do not (edit|modify)",
    re.IGNORECASE,
)
SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{60}"
    r"|\bxox[abprs]-\w{8,}|\bAIza[0-9A-Za-z_\-]{35}|\bsk_live_\w{16,}|\bglpat-[\w\-]{20}|\bnpm_[A-Za-z0-9]{36}"
    r"|\bsk-[A-Za-z0-9]{40,}|\beyJ[\w\-]{20,}\.eyJ[\w\-]{20,}\.[\w\-]{20,}"
)
CODE = re.compile(r"[A-Za-z_]")
DIGIT = re.compile(r"[0-9]")
LETTERS_AT_LEAST = 0.35
DIGITS_AT_MOST = 0.2


def reason_to_drop(path: str, language: str, data: bytes) -> str | None:
    """The first reason against a file, cheap ones first; None for a file to keep."""
    if len(data) > LARGEST:
        return "over 300 KB"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    if len(text) < SMALLEST:
        return "tiny"
    folders = {part.lower() for part in PurePosixPath(path).parts[:-1]}
    if not folders.isdisjoint(VENDORED):
        return "vendored"
    if GENERATED_NAME.search(path) or GENERATED_HEAD.search(text[:1500]):
        return "generated"
    if _has_long_lines(text):
        return "long lines"
    if _is_data(text):
        return "data"
    if SECRET.search(text):
        return "secret"
    return "syntax error" if language == "python" and parser(language).parse(data).root_node.has_error else None


def _has_long_lines(text: str) -> bool:
    lines = text.split("\n")
    return max(map(len, lines)) > LONGEST_LINE or len(text) / len(lines) > LONGEST_MEAN


def _is_data(text: str) -> bool:
    """True if mostly numbers or symbols, as in tables and binary data in source form; prose in other scripts goes
    too."""
    size = len(text) - text.count(" ") - text.count("\n")
    letters, digits = len(CODE.findall(text)), len(DIGIT.findall(text))
    return "\0" in text or letters < LETTERS_AT_LEAST * size or digits > DIGITS_AT_MOST * size
