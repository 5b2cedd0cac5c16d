import json
import re

import pytest

from mercury_ls.cli.given import UsageError
from mercury_ls.cli.parser import parser
from mercury_ls.cli.serve import own_greeting, print_new_token, serve
from mercury_ls.link.local import token_file
from mercury_ls.serve.daemon import Options


@pytest.mark.parametrize(
    ("options", "site", "said"),
    [
        (
            Options(http="127.0.0.1:8391"),
            "http://127.0.0.1:8391",
            [
                "playground    http://127.0.0.1:8391/#token=secret\n",
                "export OPENAI_BASE_URL=http://127.0.0.1:8391/v1 OPENAI_API_KEY=\"$(cat 'FILE')\"\n",
                "export ZED_OPEN_AI_COMPATIBLE_EDIT_PREDICTION_API_KEY=\"$(cat 'FILE')\"\n",
                "{'endpoint_fim': 'http://127.0.0.1:8391/infill', 'api_key': readfile('FILE')[0]}\n",
                '"llama-vscode.endpoint": "http://127.0.0.1:8391", "llama-vscode.api_key": "secret"',
            ],
        ),
        (
            Options(http="[::1]:80", open=True),
            "http://[::1]:80",
            ["OPENAI_BASE_URL=http://[::1]:80/v1", "not needed by programs on this machine"],
        ),
    ],
)
def test_settings_for_other_programs_are_printed(options, site, said, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a b"))
    printed = own_greeting(options, site, "secret")
    for part in said:
        assert part.replace("FILE", str(token_file())) in printed + "\n"
    assert "secret" not in own_greeting(options, site, "")
    (zed,) = re.findall(r'"edit_predictions": (.*)', printed)
    assert json.loads(zed)["provider"] == "open_ai_compatible_api"
    assert token_file().parent.is_dir()


def test_token_is_made_for_names_that_a_file_may_have(capsys):
    assert print_new_token("ada") == 0
    assert "  ada: " in capsys.readouterr().out
    for name in ("a: b", ""):
        with pytest.raises(UsageError, match=f"'{name}' is not a valid name"):
            serve(parser().parse_args(["serve", "--new-token", name]))
