import pytest

from mercury_ls.team.config import TeamConfig
from mercury_ls.team.run import unrenewed

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
