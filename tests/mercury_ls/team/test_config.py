import re

import pytest

from mercury_ls.team.config import Replicas, TeamError, lacking, new_token, read_config

DIGEST = "0" * 64


def read(tmp_path, text):
    path = tmp_path / "team.yaml"
    path.write_text(text)
    return read_config(path)


def test_missing_settings_have_defaults(tmp_path):
    config = read(tmp_path, f"users:\n  ada: {'a' * 64}\nreplicas: {{minimum: 2, maximum: 4}}\n")
    assert config.users == {"ada": "a" * 64}
    assert config.listen == "127.0.0.1:8391"
    assert config.replicas == Replicas(2, 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users: {}", "users is empty.*--new-token"),
        ("users: {ada: secret}", "users.ada is not the SHA-256 of a token.*--new-token"),
        (f"users: {{'../ada': a{DIGEST[1:]}}}", "'../ada' is not a valid name"),
        (f"users: {{ada: a{DIGEST[1:]}}}\nreplicas: {{minimum: 3}}", "replicas.maximum is 1, less than minimum, 3"),
        (f"users: {{ada: a{DIGEST[1:]}}}\nreplicas: {{minimum: 0}}", "replicas.minimum"),
        (f"users: {{ada: a{DIGEST[1:]}}}\nreplica: 3", "`replica`"),
        (f"users: {{ada: a{DIGEST[1:]}, bob: a{DIGEST[1:]}}}", "two users have the same token.*--new-token"),
        (f"users: {{ada: a{DIGEST[1:]}}}\nlisten: 2024-99-99", "month must be in 1..12"),
        (f"users: {{ada: a{DIGEST[1:]}}}\nreplicas: {{minimum: {'9' * 5000}}}", "integer string conversion"),
        ("users:\n  ada: [", "at line 3, column 1; docs/TEAM.md has an example"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor.* at line 1, column 1; "),
    ],
)
def test_unusable_settings_are_reported_with_their_place(tmp_path, text, said):
    with pytest.raises(TeamError, match=re.compile(said, re.DOTALL)) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path / 'team.yaml'}: ")
    assert "\n" not in str(refused.value)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(TeamError, match=r"none\.yaml: cannot be read"):
        read_config(tmp_path / "none.yaml")


def test_new_token_is_accepted_by_its_digest(tmp_path):
    token, digest = new_token()
    assert len(token) >= 40
    assert read(tmp_path, f"users: {{ada: {digest}}}").users == {"ada": digest}


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        (Replicas(2, 900), ""),
        (Replicas(900, 900), "replicas: 900 engines that reserve 1 CPUs each do not fit on 2: lower minimum or cpus"),
        (Replicas(900, 900, cpus=0), ""),
        (Replicas(gpus=0.5), "replicas: 1 engines that reserve 0.5 GPUs each do not fit on 0: lower minimum or gpus"),
    ],
)
def test_engines_that_find_no_room_are_told(replicas, said):
    assert lacking(replicas, {"CPU": 2.0, "memory": 1e9}) == said
