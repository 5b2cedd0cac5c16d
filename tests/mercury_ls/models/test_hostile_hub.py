"""A hostile hub writes nothing before the user agrees, nothing outside its folder, and no more than it announced; and
whatever it answers, a sentence says what is wrong."""

import json
import os
import random
import tempfile
import zlib
from contextlib import suppress
from itertools import repeat

import pytest

from bench.harness.stand_in_hub import SHA, StandIn, serving
from bench.harness.tiny import checkpoint
from mercury_engine import model_folders
from mercury_engine.api import EngineError
from mercury_ls.models import hub, library, places
from mercury_ls.models.add import described
from tests.mercury_ls.models.test_add import add_model

ID = "org/Tiny-Coder"
ESC, BIDI = "\x1b[31m", "\u202e"
DEEP = "[" * 5000 + "]" * 5000
ROUNDS = int(os.environ.get("MERCURY_LS_HOSTILE_ROUNDS", "40"))
VALUES = (
    None, True, -1, 0, 1.5, 10**30, 2**53, "", "x" * 5000, "\0", "../../settings", "..", "/etc/passwd", "C:\\a",
    "con.json", f"a{ESC}", BIDI, "\ud800", [], [1], {}, {"a": {}}, [[["x"]]],
)  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = checkpoint(tmp_path_factory.mktemp("made"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "Qwen2Tokenizer"}')
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "drafts").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "drafts"))
    monkeypatch.setattr(model_folders, "added_home", lambda: tmp_path / "data/models")
    monkeypatch.setattr(library, "state_file", lambda: tmp_path / "state/models.json")
    return tmp_path


@pytest.fixture
def stand_in(home, files, monkeypatch):
    constants = hub.library().constants
    with serving(StandIn(dict(files), ID)) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
        yield served


TOKEN = "hf_VxKqPzRtYwLmNbGhJdSaFcEuOiTrQw"


@pytest.mark.parametrize(
    "wrong",
    [
        {"sha": f"Bearer {TOKEN}"},
        {"id": f"org/{TOKEN}"},
        {"siblings": [{"rfilename": f"{TOKEN}.safetensors", "size": 1}]},
        {"siblings": [{"rfilename": "config.json", "size": 1, "blobId": "x" * 60 + TOKEN}]},
        {"cardData": {"license": f"licence {TOKEN}"}},
    ],
)
def test_hub_that_repeats_token_is_not_quoted(monkeypatch, wrong):
    monkeypatch.setattr(hub.library().utils, "build_hf_headers", lambda: {"authorization": f"Bearer {TOKEN}"})
    answer = {"id": ID, "sha": SHA, "siblings": []} | wrong
    try:
        shown = repr(hub.described(json.dumps(answer).encode(), ID, ""))
    except EngineError as error:
        shown = str(error)
    assert TOKEN[:10] not in shown


def written(home):
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def check_refused(home, *said, agrees=False):
    """Nothing is written, and nobody is asked unless `agrees`."""
    asked = []

    def agreed(plan):
        asked.append(plan)
        return True

    before = written(home)
    with pytest.raises(EngineError) as refused:
        add_model(ID, agreed=agreed)
    for text in said:
        assert text in str(refused.value)
    assert bool(asked) == agrees
    assert model_folders.added() == {}
    if not agrees:
        assert written(home) == before


def weights_of(served, **changes):
    """The description of the repository with a changed entry for the weights."""
    siblings = served.info()["siblings"]
    return {"siblings": [{**each, **changes} if each["rfilename"].endswith("tensors") else each for each in siblings]}


@pytest.mark.parametrize(
    "sha",
    [
        "../../../config",
        "/tmp/elsewhere",
        "..",
        "",
        "main",
        SHA.upper(),
        SHA + "\n",
        SHA[:-1],
        f"{ESC}{SHA}",
        "C:\\",
        "\0",
    ],
)
def test_malformed_revision_leads_nowhere(stand_in, home, sha):
    stand_in.says = {"sha": sha}
    check_refused(home, ID, "its revision is", "try again later")


@pytest.mark.parametrize("id", ["../../etc", "org", "a/b/c", "org/x\n", f"org/{ESC}", "org/..", "/org/x", "org/a--b"])
def test_repository_with_malformed_name_is_refused(stand_in, home, id):
    stand_in.says = {"id": id}
    check_refused(home, ID)


@pytest.mark.parametrize(
    "name",
    ["settings\\a", "C:evil", "a\0", "con", "LPT1.a", "a b", ESC, f"a{BIDI}", "x" * 300, "~"],
)
def test_file_has_a_plain_name(stand_in, home, name):
    stand_in.says = weights_of(stand_in, rfilename=f"{name}.safetensors")
    check_refused(home, "is no plain name for a file", "choose another model")


def test_names_that_are_one_on_many_disks_are_refused(stand_in, home):
    stand_in.files |= {"Model.safetensors": b"other"}
    check_refused(home, "model.safetensors and Model.safetensors are one file on many disks")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"size": None}, "does not say how large"),
        ({"size": -1}, "Expected `int` >= 0"),
        ({"size": 10**30}, "the hub's description of it is none"),
        ({"size": "8"}, "Expected `int | null`, got `str`"),
        ({"lfs": {"sha256": "../x"}}, "the checksum of 'model.safetensors' is '../x'"),
        ({"lfs": None, "blobId": "f" * 41}, "the checksum of"),
        ({"lfs": 5}, "the hub's description of it is none"),
    ],
)
def test_malformed_file_description_is_refused(stand_in, home, changes, said):
    stand_in.says = weights_of(stand_in, **changes)
    check_refused(home, said)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"5", b"\xff\xfe", DEEP.encode(), b'{"cardData": ' + DEEP.encode() + b"}", b'{"id": 5}']
)
def test_malformed_description_is_reported(stand_in, home, body):
    stand_in.sends[""] = {}, [body]
    check_refused(home, ID, "the hub's description of it is none")


def test_large_tokenizer_is_refused_before_question_and_download(stand_in, home):
    siblings = stand_in.info()["siblings"]
    large = [{**each, "size": 8 << 30} if each["rfilename"] == "tokenizer.json" else each for each in siblings]
    stand_in.says = {"siblings": large}
    check_refused(home, "tokenizer.json has 8,589,934,592 bytes, and 67,108,864 are read at most")
    assert len(stand_in.asked) == 1


@pytest.mark.parametrize("name", ["", "config.json", "model.safetensors"])
def test_body_without_end_is_cut_off(stand_in, home, name):
    stand_in.sends[name] = {}, repeat(bytes(1 << 16))
    check_refused(home, ID, agrees=name.startswith("model"))
    assert not [path for path in home.rglob("*") if path.is_file() and path.stat().st_size > 1 << 16]


@pytest.mark.parametrize("name", ["", "config.json", "model.safetensors"])
def test_compressed_body_is_not_unpacked(stand_in, home, name):
    bomb = zlib.compress(bytes(1 << 26), wbits=31)
    stand_in.sends[name] = {"Content-Encoding": "gzip"}, [bomb]
    check_refused(home, "packed ('gzip')", "was not asked for", agrees=name.startswith("model"))


def test_long_refusal_is_not_read(stand_in, home, monkeypatch):
    real = stand_in.answer
    monkeypatch.setattr(
        stand_in, "answer", lambda path, *part: real(path, *part) if "/api/" in path else (500, {}, bytes(1 << 24))
    )
    check_refused(home, "(HTTP 500)")


def test_stalled_transfer_ends(stand_in, tmp_path):
    ticks = iter(range(0, 10**6, 30))
    stand_in.cut["model.safetensors"] = 1
    stand_in.stays = True
    repository = hub.look(ID)
    stand_in.sends["model.safetensors"] = {}, [b"x"]
    with pytest.raises(EngineError, match=r"hardly arrives: \d+ bytes in 60 s: check the connection"):
        hub.fetch(repository, repository.weights[0], tmp_path, lambda *_: None, clock=lambda: next(ticks))


def test_requested_revision_is_the_one_that_comes(stand_in, home):
    stand_in.says = {"sha": "f" * 40}
    with pytest.raises(EngineError, match=f"revision {SHA} was asked for, and the hub has ffff"):
        hub.look(ID, SHA)


@pytest.mark.parametrize(
    ("hub_at", "target", "said"),
    [
        ("https://hub.example", "http://store.example/x", "is not encrypted"),
        ("https://hub.example", "https://127.0.0.1:631/x", "leads to this machine"),
        ("http://hub.example", "http://localhost/x", "leads to this machine"),
        ("https://hub.example", "https://store.example/x", ""),
        ("http://127.0.0.1:1", "http://localhost/x", ""),
    ],
)
def test_hub_redirects_are_checked(monkeypatch, hub_at, target, said):
    monkeypatch.setattr(hub.library().constants, "ENDPOINT", hub_at)
    request = hub.library().get_session().build_request("GET", target)
    if not said:
        return hub.check_target(request, ID)
    with pytest.raises(EngineError, match=said):
        hub.check_target(request, ID)
    return None


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://x/y", "//", "http://[::1", "x" * 9000, f"/{ID}"])
def test_hub_that_leads_astray_is_not_followed(stand_in, home, monkeypatch, location):
    monkeypatch.setattr(stand_in, "answer", lambda path, start: (302, {"Location": location}, b""))
    check_refused(home)


def test_licence_text_is_shown_as_one_line_or_not_at_all(stand_in, home):
    stand_in.says = {"cardData": {"license": f"mit\n  privacy {ESC}{BIDI}"}, "tags": [f"license:{ESC}"]}
    shown = []
    assert add_model(ID, agreed=lambda plan: shown.extend(described(plan))) is None
    assert "  licence      not stated: see where the model comes from" in shown


def test_impossible_parameter_counts_do_not_make_a_model_look_small(stand_in, home):
    stand_in.says = weights_of(stand_in, size=10**15)
    check_refused(home, "of disk, and", "are free")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/b", "/a", "a\\b", "C:a", "a\0", "nul", "AUX.json", "a.", "a ", "é", "x" * 300, "-a"],
)
def test_name_that_leaves_its_folder_is_no_place(tmp_path, name):
    with pytest.raises(EngineError, match="is no plain name for a file"):
        places.inside(tmp_path, name)


def test_place_is_neither_a_link_nor_another_name_of_an_existing_file(tmp_path):
    (tmp_path / "Taken").touch()
    with pytest.raises(EngineError, match="one file on many disks"):
        places.inside(tmp_path, "taken")
    assert places.inside(tmp_path, "Taken") == tmp_path / "Taken"


@pytest.mark.skipif(os.name == "nt", reason="links need a right that most users lack")
@pytest.mark.parametrize("place", [".tiny-coder.adding", f".tiny-coder.adding/{SHA}", ".lock", "tiny-coder"])
def test_links_are_not_written_through(stand_in, home, place):
    (home / "precious").mkdir()
    link = model_folders.added_home() / place
    link.parent.mkdir(parents=True)
    if place.startswith(".tiny") and place.endswith(SHA):
        (link.parent / "source").write_text(f"{ID} ")
    link.symlink_to(home / "precious")
    with pytest.raises(EngineError, match="is a link, and nothing is written through it"):
        add_model(ID)
    assert [*(home / "precious").iterdir()] == []


def damaged(rng, value):
    """A JSON value in which one place has another value."""
    at, owner, key = value, None, None
    while isinstance(at, dict | list) and at and (owner is None or rng.random() < 0.8):
        owner, key = at, rng.choice([*at]) if isinstance(at, dict) else rng.randrange(len(at))
        at = at[key]
    if owner is not None:
        owner[key] = rng.choice(VALUES)
    return value


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_whatever_a_hub_answers_a_sentence_says_what_is_wrong(stand_in, home, seed):
    """Or the model is added, if what was changed does not matter."""
    rng = random.Random(seed)
    target = rng.choice(["", "config.json", "tokenizer.json", "tokenizer_config.json"])
    if target:
        content = damaged(rng, json.loads(stand_in.files[target]))
        stand_in.files[target] = json.dumps(content).encode()
    else:
        stand_in.says = damaged(rng, stand_in.info())
    ours = (home / "data/models/tiny-coder", home / "drafts", home / "data")
    with suppress(EngineError):
        add_model(ID, agreed=lambda plan: bool([*described(plan)]))
    assert not [*(home / "drafts").iterdir()]
    for path in home.rglob("*"):
        assert path in (*ours, ours[0].parent) or ours[0].parent in path.parents


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a GGUF file"),
        (b"\x1b[31m" * 9, "is not a GGUF file"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 16, "claims 18,446"),
        (b"GGUF\x03\0\0\0" + bytes(16), "the architecture is not named"),
    ],
)
def test_malformed_gguf_file_leaves_nothing(stand_in, home, content, said):
    stand_in.files = {"tiny.q8_0.gguf": content + bytes(64)}
    check_refused(home, f"{ID}/tiny.q8_0.gguf", said)


def test_gguf_file_is_read_only_at_its_beginning(stand_in, home):
    stand_in.files = {"tiny.q8_0.gguf": b"GGUF"}
    stand_in.sends = {"tiny.q8_0.gguf": ({}, repeat(bytes(1 << 20)))}
    for size, said in ((1 << 26, "is not a GGUF file"), (1 << 49, "of disk are free")):
        stand_in.says = {"siblings": [{"rfilename": "tiny.q8_0.gguf", "size": size}]}
        check_refused(home, said)


def test_gguf_file_shorter_than_announced_is_refused(stand_in, home):
    stand_in.files = {"tiny.q8_0.gguf": b"GGUF"}
    stand_in.says = {"siblings": [{"rfilename": "tiny.q8_0.gguf", "size": 1000}]}
    check_refused(home, "of tiny.q8_0.gguf arrived 4 bytes, and no more")


@pytest.mark.parametrize("name", ["../a.gguf", "a/b.gguf", ".a.gguf", f"{ESC}.gguf", "a b.gguf", "a.gguf\n"])
def test_gguf_file_with_unsuitable_name_is_refused(stand_in, home, name):
    stand_in.says = {"siblings": [{"rfilename": name, "size": 1000}]}
    check_refused(home, "neither .safetensors nor whole .gguf files")
