import asyncio

import pytest

from mercury_ls.settings.schema import Settings
from mercury_ls.team.config import TeamConfig
from mercury_ls.team.run import by_digest, renew, run, unrenewed

USERS = {"ada": "a" * 64}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"users": {"bob": "b" * 64}, "model": "other"}, []),
        ({"listen": "127.0.0.1:1"}, ["listen"]),
        ({"hosts": ("example.org",), "requests_per_user": 9}, ["hosts", "requests_per_user"]),
    ],
)
def test_changes_needing_a_restart_are_reported(changed, expected):
    assert unrenewed(TeamConfig(USERS), TeamConfig(**{"users": USERS} | changed)) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("listen: ':99999'", "':99999' is not HOST:PORT with a port up to 65535"),
        ("listen: 0.0.0.0:8391", "0.0.0.0:8391 can be reached from other machines"),
        ("model: none", "engine.model = 'none' is neither an installed model"),
        ("certificate: none.pem", "cannot use certificate 'none.pem'"),
    ],
)
def test_failed_start_names_the_file(line, said, tmp_path, capsys):
    path = tmp_path / "team.yaml"
    path.write_text(f"users: {{ada: {USERS['ada']}}}\n{line}\n")
    assert run(path, Settings()) == 1
    assert capsys.readouterr().err.startswith(f"mercury-ls serve: {path}: {said}")


@pytest.mark.parametrize("error", [ValueError("replicas: no room"), RuntimeError("Ray failed"), KeyError("replica")])
async def test_removed_user_may_ask_no_more_even_if_new_engines_find_no_room(error, tmp_path, caplog):
    asked = await renewed(tmp_path, f"users: {{bob: {'b' * 64}}}\nrequests_per_user: 9\n", error)
    assert asked == [{"b" * 64: "bob"}] * 2
    path = tmp_path / "team.yaml"
    assert caplog.messages[:2] == [
        f"{path}: requests_per_user: takes effect when the server is started again",
        f"{path} was read again: 1 user; the engines stay as they are: {error}",
    ]


async def test_unusable_file_changes_nothing(tmp_path, caplog):
    assert await renewed(tmp_path, "users: {}", None) == []
    said = caplog.messages[0]
    assert said.startswith(f"{tmp_path / 'team.yaml'}: users is empty")
    assert said.endswith("NOBODY IS SHUT OUT, and nothing else was changed: 1 user may still ask: ada")


async def renewed(tmp_path, text, error):
    """The users at each time that engines were asked for, while the file is read twice; the first time they fail."""
    path, before, asked = tmp_path / "team.yaml", TeamConfig(USERS), []
    path.write_text(text)
    users, changed, done = by_digest(before), asyncio.Event(), asyncio.Event()

    async def deploy(config):
        assert config.users == {name: digest for digest, name in users.items()}
        asked.append(dict(users))
        if len(asked) == 1:
            changed.set()
            raise error
        done.set()

    changed.set()
    renewing = asyncio.create_task(renew(path, before, users, changed, deploy))
    async with asyncio.timeout(10):
        while changed.is_set() or not (done.is_set() or users == by_digest(before)):
            await asyncio.sleep(0)
    renewing.cancel()
    return asked
