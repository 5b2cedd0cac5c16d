import json
import re

import pytest

from mercury_ls.cli.given import UsageError
from mercury_ls.cli.serve import greeting, print_new_token
from mercury_ls.link.local import token_file
from mercury_ls.serve.daemon import Options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(http="127.0.0.1:8391"), ["http://127.0.0.1:8391/infill", "http-token"]),
        (Options(http="[::1]:80", open=True), ["http://[::1]:80/v1", "not needed by programs on this machine"]),
        (Options(http=":80"), ["http://127.0.0.1:80/v1", "playground    http://127.0.0.1:80/\n"]),
        (
            Options(http="0.0.0.0:443", certificate="c.pem", hosts=("models.example.org",)),
            ["https://models.example.org:443/v1/completions"],
        ),
    ],
)
def test_what_to_paste_into_other_programs(options, said, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for part in said:
        assert part in greeting(options)
    (zed,) = re.findall(r'"edit_predictions": (.*)', greeting(options))
    assert json.loads(zed)["provider"] == "open_ai_compatible_api"
    assert token_file().parent.is_dir()


def test_a_token_is_made_for_a_name_that_the_file_may_have(capsys):
    assert print_new_token("ada") == 0
    assert "  ada: " in capsys.readouterr().out
    with pytest.raises(UsageError, match="'a: b' is no name"):
        print_new_token("a: b")
