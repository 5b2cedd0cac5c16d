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
def test_what_a_running_server_does_not_take_over(changed, expected):
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
def test_where_it_cannot_start_the_file_is_named(line, said, tmp_path, capsys):
    path = tmp_path / "team.yaml"
    path.write_text(f"users: {{ada: {USERS['ada']}}}\n{line}\n")
    assert run(path, Settings()) == 1
    assert capsys.readouterr().err.startswith(f"mercury-ls serve: {path}: {said}")


@pytest.mark.parametrize("error", [ValueError("replicas: no room"), RuntimeError("Ray failed"), KeyError("replica")])
async def test_what_is_read_again_is_taken_over_as_a_whole_or_not_at_all(error, tmp_path, caplog):
    path, before = tmp_path / "team.yaml", TeamConfig(USERS)
    path.write_text(f"users: {{bob: {'b' * 64}}}\n")
    users, changed, asked = by_digest(before), asyncio.Event(), []

    async def deploy(config):
        asked.append((config.users, dict(users)))
        if len(asked) == 1:
            changed.set()
            raise error

    changed.set()
    renewing = asyncio.create_task(renew(path, before, users, changed, deploy))
    async with asyncio.timeout(10):
        while users == by_digest(before):
            await asyncio.sleep(0)
    renewing.cancel()
    assert asked == [({"bob": "b" * 64}, by_digest(before))] * 2
    assert users == {"b" * 64: "bob"}
    assert f"nothing was changed: {path}: {error}" in caplog.text
