"""The template for LSP4IJ names the server and every language of ours."""

import json

import pytest

from mercury_ls.cli.parser import parser
from mercury_ls.code.languages import LANGUAGES, Language
from tests.editors.documented import EDITORS

TEMPLATE = json.loads((EDITORS / "jetbrains/template.json").read_text(encoding="utf-8"))
MAPPINGS = {mapping["languageId"]: mapping["fileType"] for mapping in TEMPLATE["fileTypeMappings"]}


def test_it_starts_the_server_on_every_system():
    assert TEMPLATE["programArgs"].keys() == {"default", "windows"}
    for command in TEMPLATE["programArgs"].values():
        program, *arguments = command.removeprefix('sh -c "').removesuffix('"').split()
        assert program.removesuffix(".exe") == "mercury-ls"
        assert parser().parse_args(arguments).stdio


def test_it_knows_no_other_language():
    assert MAPPINGS.keys() == {language.id for language in LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
def test_it_takes_the_files_of_a_language(language: Language):
    patterns = [*(f"*{extension}" for extension in language.extensions), *language.filenames]
    assert MAPPINGS[language.id]["patterns"] == patterns
