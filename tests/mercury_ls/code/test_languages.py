import re

import pytest

from mercury_ls.code.languages import LANGUAGES, Language, find, parser

by_id = pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)


def check(language_id: str, path: str, expected: str | None):
    found = find(language_id, path)
    assert (found and found.id) == expected


def test_language_from_editor_wins():
    check("python", "a.js", "python")
    check("typescriptreact", "a", "tsx")
    check("javascriptreact", "a", "javascript")
    check("shellscript", "a", "bash")
    check("csharp", "a", "csharp")
    check("objective-c", "a.m", "c")
    check("Python", "a", "python")


def test_file_unknown_to_editor_goes_by_its_name():
    check("", "src/a.PY", "python")
    check("plaintext", "a.tsx", "tsx")
    check("", "C:\\code\\Gemfile", "ruby")
    check("", "/home/.bashrc", "bash")
    check("", "a.d.ts", "typescript")


def test_other_files_have_no_language():
    check("plaintext", "notes.txt", None)
    check("", "Makefile", None)
    check("", "folder.py/readme", None)


def test_ids_extensions_and_names_are_claimed_once():
    for claims in (lambda of: (of.id, *of.aliases), lambda of: of.extensions, lambda of: of.filenames):
        claimed = [claim for language in LANGUAGES for claim in claims(language)]
        assert len(claimed) == len(set(claimed))


@by_id
def test_node_kinds_exist_in_the_grammar(language: Language):
    grammar = parser(language).language
    names = ("comments", "strings", "interpolations", "blocks", "scopes", "imports", "definitions")
    kinds = {kind for name in names for kind in getattr(language, name)}
    assert {kind for kind in kinds if grammar.id_for_node_kind(kind, True) is None} == set()


@by_id
def test_patterns_compile(language: Language):
    assert re.compile(language.header)
    assert re.compile(language.opening)


def test_parser_is_loaded_once():
    assert parser(find("python", "")) is parser(find("", "a.py"))
