"""A model is added as a whole, or nothing of it is visible; and what it is, is known before its weights are loaded."""

import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from bench.harness.stand_in_hub import SHA, StandIn, serving
from bench.harness.tiny import SPECIALS, checkpoint
from mercury_engine import model_folders
from mercury_engine.api import EngineError
from mercury_engine.record import read_record
from mercury_engine.remote.probe import ProbedServer, Served
from mercury_ls.models import add as adding
from mercury_ls.models import hub, library, supplies
from mercury_ls.models.add import AddOrder, add, described
from mercury_ls.serve import added
from mercury_ls.wording import BY_RULES_ALONE
from tests.engine.model.test_gguf import WIDTH, fields, file_of, tensors, weights
from tests.mercury_ls.models.test_canary import opened

SMALL = ("config.json", "tokenizer.json")


@pytest.fixture
def home(tmp_path, monkeypatch):
    for kind in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    monkeypatch.setattr(model_folders, "added_home", lambda: tmp_path / "data/models")
    monkeypatch.setattr(library, "state_file", lambda: tmp_path / "state/models.json")
    return tmp_path / "data/models"


@pytest.fixture
def stand_in(home, monkeypatch, tmp_path):
    folder = checkpoint(tmp_path / "made")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    constants = hub.library().constants
    with serving(StandIn(files, "org/Tiny-Coder")) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        yield served


def add_model(source, *, agreed=lambda plan: True, open_made=None, network=False, **order):
    order = AddOrder(source=str(source), **order)
    open_made = open_made or answers
    return add(order, network=network, agreed=agreed, report=lambda *_: None, open_made=open_made)


def made(source, *, agree=True, network=False, **order):
    """The record, and what was shown before the user agreed."""
    shown = []

    def agreed(plan):
        shown.extend(described(plan))
        return agree

    model = add_model(source, agreed=agreed, network=network, **order)
    return model and model.record, "\n".join(shown)


def answers(folder, record):
    """Whatever the model, in its own format."""
    return opened(record.prompt, record.prompt)


def left():
    return [path.name for path in model_folders.added_home().glob(".*.adding")]


def check_refused(said, source, **order):
    with pytest.raises(EngineError) as refused:
        made(source, **order)
    for text in [said] if isinstance(said, str) else said:
        assert text in str(refused.value)


def test_folder_becomes_a_model_with_name(home, tmp_path):
    record, shown = made(checkpoint(tmp_path / "Tiny-Coder"), precision="int4")
    assert (record.name, record.kind, record.prompt, record.precision) == ("tiny-coder", "fim", "qwen", "int4")
    assert record.architecture == "Qwen2ForCausalLM"
    assert "lines and blocks (prompt format qwen)" in shown
    assert list(model_folders.added()) == ["tiny-coder"]
    folder = model_folders.resolve("tiny-coder")
    assert read_record(folder) == record
    assert {path.name for path in folder.iterdir()} == {"model.json", "weights.safetensors", *SMALL}
    assert [path.name for path in home.iterdir() if path.is_dir()] == ["tiny-coder"]


def test_model_of_hub_is_pinned_to_its_revision(home, stand_in):
    record, shown = made("org/Tiny-Coder")
    assert (record.source, record.revision, record.licence) == ("org/Tiny-Coder", SHA, "apache-2.0")
    assert "licence      apache-2.0" in shown
    assert "in 1 file" in shown
    assert model_folders.resolve("tiny-coder")


def test_weights_are_not_loaded_before_the_user_agrees(home, stand_in):
    assert made("org/Tiny-Coder", agree=False)[0] is None
    assert not any("safetensors" in path for path, _ in stand_in.asked)
    assert not home.exists()


def test_interrupted_addition_is_not_visible_and_goes_on(home, stand_in):
    stand_in.cut["model.safetensors"] = 5000
    check_refused("interrupted after", "org/Tiny-Coder")
    assert left() == [".tiny-coder.adding"]
    assert model_folders.installed().keys() == model_folders.shipped().keys()
    stand_in.is_gone, asked = False, len(stand_in.asked)
    made("org/Tiny-Coder")
    again = stand_in.asked[asked:]
    assert [path.rpartition("/")[2] for path, _ in again] == ["Tiny-Coder", "model.safetensors"]
    assert 0 < again[-1][1] <= 5000
    assert model_folders.resolve("tiny-coder")


def test_leftovers_of_another_source_are_not_used(home, stand_in, tmp_path):
    stand_in.cut["model.safetensors"] = 5000
    check_refused("interrupted after", "org/Tiny-Coder")
    record, _ = made(checkpoint(tmp_path / "Tiny-Coder"))
    assert record.revision == ""


def test_failed_conversion_leaves_no_model(home, tmp_path, monkeypatch):
    def fail(*_):
        raise EngineError("damaged")

    monkeypatch.setattr(added, "convert", fail)
    check_refused("damaged", checkpoint(tmp_path / "tiny"))
    assert (model_folders.added(), left()) == ({}, [])


def test_renamed_repository_is_reported(home, stand_in):
    stand_in.renamed["old/coder"] = "org/Tiny-Coder"
    record, shown = made("hf:old/coder")
    assert (record.name, record.source) == ("coder", "org/Tiny-Coder")
    assert "old/coder is now called org/Tiny-Coder" in shown


def test_gated_weights_are_said_to_be_so(home, stand_in):
    stand_in.gated, stand_in.admitted = True, False
    check_refused(["accept its terms", "HF_TOKEN"], "org/Tiny-Coder")
    assert (model_folders.added(), left()) == ({}, [])


def test_folder_written_like_hub_name_is_mentioned(home, stand_in, tmp_path, monkeypatch):
    checkpoint(tmp_path / "models/alpha")
    monkeypatch.chdir(tmp_path)
    check_refused(["the hub has no models/alpha", "write ./models/alpha"], "models/alpha")


def test_prompt_format_of_servers_is_refused_with_a_remedy(home, tmp_path):
    check_refused(["--prompt chat is for servers", "leave --prompt out"], checkpoint(tmp_path / "tiny"), prompt="chat")


def test_next_edits_of_a_model_that_fills_gaps_come_from_rules(home, tmp_path):
    assert f"next edits   {BY_RULES_ALONE}" in made(checkpoint(tmp_path / "tiny"))[1]


def test_pickles_are_no_weights(home, stand_in):
    stand_in.files = {"config.json": b"{}", "pytorch_model.bin": b"", "tiny-00001-of-00002.gguf": b""}
    check_refused(["neither .safetensors nor whole .gguf files"], "org/Tiny-Coder")


OF_GGUF = {"model.json", "weights.safetensors", "tokenizer_config.json", *SMALL}
Q8, Q8_2, Q4 = "tiny.q8_0.gguf", "tiny.q8_0.v2.gguf", "Tiny-Q4_K_M.gguf"


@pytest.fixture
def ggufs(stand_in):
    """A repository that has GGUF files only, as those of Sweep's models."""
    stand_in.files = {"README.md": b"", Q4: gguf_file(), Q8: gguf_file(), Q8_2: gguf_file()}
    return stand_in


def loaded(stand_in):
    return [path.rpartition("/")[2] for path, _ in stand_in.asked if "/resolve/" in path]


def test_best_gguf_file_of_a_repository_is_added(home, ggufs):
    record, shown = made("org/Tiny-Coder")
    assert (record.source, record.revision, record.licence) == ("org/Tiny-Coder", SHA, "apache-2.0")
    assert (record.name, record.prompt, record.architecture) == ("tiny-coder", "qwen", "Qwen2ForCausalLM")
    assert f"  {Q8_2}; --file chooses another: {Q4}, {Q8}" in shown
    assert "licence      apache-2.0" in shown
    assert set(loaded(ggufs)) == {Q8_2}
    assert {path.name for path in (home / record.name).iterdir()} == OF_GGUF


def test_user_may_choose_another_gguf_file(home, ggufs, stand_in):
    assert made("org/Tiny-Coder", file=Q4)[0]
    assert set(loaded(ggufs)) == {Q4}
    check_refused(
        [f"has no x.gguf: --file chooses one of {Q4}, {Q8}, {Q8_2}"], "org/Tiny-Coder", name="b", file="x.gguf"
    )
    check_refused("--file is for models on the hub", home / "tiny-coder", name="b", file="x.gguf")


def test_gguf_file_without_room_for_it_is_not_chosen(home, ggufs, monkeypatch):
    ggufs.files[Q8] = ggufs.files[Q8_2] = gguf_file() + bytes(1 << 20)
    monkeypatch.setattr(supplies, "free_disk", lambda: supplies.SPARE_DISK + (1 << 20))
    assert made("org/Tiny-Coder")[0]
    assert set(loaded(ggufs)) == {Q4}


def test_files_with_names_that_say_nothing_are_for_the_user_to_choose(home, stand_in):
    stand_in.files = {"a.gguf": gguf_file(), "b.gguf": gguf_file()}
    check_refused("choose one with --file, of a.gguf, b.gguf", "org/Tiny-Coder")
    stand_in.files.pop("b.gguf")
    assert made("org/Tiny-Coder")[0]


def test_gguf_file_is_read_only_at_its_beginning_before_the_user_agrees(home, ggufs, monkeypatch):
    content = gguf_file()
    monkeypatch.setattr(supplies, "GGUF_HEAD", len(content) - 100)
    assert made("org/Tiny-Coder", agree=False)[0] is None
    assert not home.exists()
    ggufs.asked.clear()
    assert made("org/Tiny-Coder")[0]
    assert [start for path, start in ggufs.asked if path.endswith(Q8_2)] == [0, len(content) - 100]


def test_interrupted_gguf_file_goes_on(home, ggufs, monkeypatch):
    monkeypatch.setattr(supplies, "GGUF_HEAD", len(gguf_file()) - 200)

    def agreed(plan):
        ggufs.cut[Q8_2] = 100
        return True

    with pytest.raises(EngineError, match="interrupted after"):
        add_model("org/Tiny-Coder", agreed=agreed)
    assert left() == [".tiny-coder.adding"]
    ggufs.is_gone = False
    ggufs.asked.clear()
    assert made("org/Tiny-Coder")[0]
    assert [start for path, start in ggufs.asked if path.endswith(Q8_2)] == [0, len(gguf_file()) - 100]


def test_cached_gguf_file_is_used_where_hub_may_not_be_asked(home, tmp_path, monkeypatch):
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / Q8).write_bytes(gguf_file())
    file = hub.RepositoryFile(Q8, len(gguf_file()))
    repository = hub.Repository("org/Tiny-Coder", SHA, (file,), folder=tmp_path / "snapshot")
    monkeypatch.setattr(hub, "look", lambda id, revision: repository)
    record, _ = made("org/Tiny-Coder")
    assert (record.source, record.revision) == ("org/Tiny-Coder", SHA)


def gguf_file():
    tokens = ["a", "b", "ab", *SPECIALS]
    more = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 3 + [3] * len(SPECIALS)}
    published = weights() | {"model.embed_tokens.weight": np.ones((len(tokens), WIDTH), np.float32)}
    return file_of({**fields("qwen2", **more), "tokenizer.ggml.merges": ["a b"]}, list(tensors(published, "qwen2")))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"specials": ("<|endoftext|>",)}, "was not trained to fill in the middle"),
        ({"architectures": ["T5ForConditionalGeneration"]}, "T5ForConditionalGeneration, which cannot run in process"),
        ({"quantization_config": {"quant_method": "awq"}}, "its weights are quantised already (awq)"),
        ({"quantization_config": "awq"}, "its weights are quantised already (awq)"),
        ({"architectures": 5}, "architectures is 5, not a list"),
        ({"num_hidden_layers": 10**30}, "num_hidden_layers is 1000"),
        ({"head_dim": 10**10}, "head_dim is 10000000000"),
        ({"rope_theta": "x"}, "rope_theta is 'x', not a positive number"),
        ({"rope_theta": True}, "rope_theta is True, not a positive number"),
        ({"rms_norm_eps": -1}, "rms_norm_eps is -1, not a positive number"),
        ({"num_key_value_heads": "x"}, "num_key_value_heads is 'x', not a number"),
        ({"num_key_value_heads": 3}, "4 attention heads cannot share 3 of keys and values"),
        ({"head_dim": 7}, "head_dim is 7, and halves of a head are rotated"),
        ({"hidden_size": 36}, "head_dim is 9"),
        ({"attention_multiplier": "x"}, "attention_multiplier is 'x', not a positive number"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "has a value of the wrong kind"),
        ({"max_position_embeddings": -1}, "a context of -1"),
        ({"vocab_size": 100}, ["has 264 tokens, and config.json says 100", "different models"]),
    ],
)
def test_unusable_model_is_refused_before_its_weights(home, tmp_path, changes, said):
    check_refused(said, checkpoint(tmp_path / "tiny", **changes))
    assert left() == []


def test_tokenizer_in_parts_is_put_together(home, tmp_path):
    folder = checkpoint(tmp_path / "tiny")
    whole = json.loads((folder / "tokenizer.json").read_bytes())
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(whole["model"]["vocab"]))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "added_tokens.json").write_text(json.dumps({t["content"]: t["id"] for t in whole["added_tokens"]}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "Qwen2Tokenizer"}')
    record, _ = made(folder)
    made_of = json.loads((home / "tiny/tokenizer.json").read_bytes())
    assert (record.prompt, record.source) == ("qwen", str(folder))
    assert made_of["added_tokens"] == whole["added_tokens"]
    assert not (folder / "tokenizer.json").exists()


def test_gguf_file_becomes_a_model(home, tmp_path):
    file = tmp_path / "Tiny-Q8_0.gguf"
    file.write_bytes(gguf_file())
    record, _ = made(file)
    assert (record.name, record.prompt, record.source) == ("tiny-q8_0", "qwen", str(file))
    assert {path.name for path in (home / record.name).iterdir()} == OF_GGUF


def test_more_layers_than_weights_are_not_counted(home, tmp_path):
    check_refused("num_hidden_layers is 1000000, and there are", checkpoint(tmp_path / "tiny", num_hidden_layers=10**6))


@pytest.mark.parametrize(
    "header", [b"", b"null", b'{"a": 1}', b'{"a": {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]}}']
)
def test_damaged_weights_file_is_named(home, tmp_path, header):
    file = checkpoint(tmp_path / "tiny") / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    check_refused([str(file), "get it again"], tmp_path / "tiny")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"added_tokens": 5}, "not a tokenizer file"),
        ({"added_tokens": ["x"]}, "not a tokenizer file"),
        ({"model": {"type": "BPE", "vocab": 5, "merges": []}}, "not a tokenizer file"),
        ({"model": {"type": "BPE", "vocab": {"a": 10**9}, "merges": []}}, "a token with id 1000000000"),
        ({"model": {"type": "Unigram", "vocab": []}}, "supports only BPE"),
    ],
)
def test_unusable_tokenizer_is_refused(home, tmp_path, changes, said):
    file = checkpoint(tmp_path / "tiny") / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    check_refused([str(file), said], tmp_path / "tiny")


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("text", "said"), [(None, "has no {}"), ("{", "cannot be read"), ("[]", "not a JSON object")])
def test_damaged_folder_is_named(home, tmp_path, name, text, said):
    file = checkpoint(tmp_path / "tiny") / name
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    check_refused(said.format(name), tmp_path / "tiny")


@pytest.mark.parametrize(
    ("name", "kind", "prompt"),
    [("sweep-next-edit-1.5B", "next-edit", "sweep"), ("zeta-2.1", "next-edit", "zeta-2.1"), ("x", "fim", "qwen")],
)
def test_name_tells_next_edit_model_from_its_base_model(tmp_path, name, kind, prompt):
    found = added.identify(checkpoint(tmp_path / "tiny"), name)
    assert (found.kind, found.prompt) == (kind, prompt)


def test_user_may_say_what_model_is(tmp_path):
    folder = checkpoint(tmp_path / "tiny", specials=(*SPECIALS, "<M>"))
    assert added.identify(folder, "tiny").kind == "diffusion"
    assert added.identify(folder, "tiny", "qwen").kind == "fim"


def test_full_disk_is_known_beforehand(home, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=150_000_000))
    check_refused(["needs 200 MB of disk", "150 MB are free"], checkpoint(tmp_path / "tiny"))


def test_long_steps_are_reported_before_they_begin(home, tmp_path):
    steps = []

    def agreed(plan):
        steps.append("agreed")
        return True

    def open_made(folder, record):
        steps.append("opened")
        return answers(folder, record)

    def report(share, step):
        steps.append(f"{step} {share:.0%}")

    order = AddOrder(source=str(checkpoint(tmp_path / "tiny")))
    add(order, network=False, agreed=agreed, report=report, open_made=open_made)
    asking = "asking tiny known questions"
    assert steps[0] == "agreed"
    assert steps[-4:] == ["converting 100%", f"{asking} 0%", "opened", f"{asking} 100%"]


def test_memory_of_a_large_tokenizer_is_announced(home, tmp_path):
    folder = checkpoint(tmp_path / "tiny")
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes() + b" " * 50_000_000)
    assert "in memory    about 1,200 MB" in made(folder, agree=False)[1]


def test_too_little_memory_is_known_beforehand(home, tmp_path, monkeypatch):
    monkeypatch.setattr(adding.local, "memory", lambda: 200_000_000)
    check_refused(["about 300 MB of memory at int8", "200 MB", "--int4"], checkpoint(tmp_path / "tiny"))


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "auto", "fake", "stand-in", "x" * 101])
def test_names_are_plain_and_free(home, tmp_path, name):
    if name:
        check_refused("name", checkpoint(tmp_path / "tiny"), name=name)
    made(tmp_path / "tiny" if name else checkpoint(tmp_path / "tiny"), name="mine")
    check_refused("is the name of an installed model", tmp_path / "tiny", name="mine")


def test_models_are_added_one_at_a_time(home, tmp_path):
    folder = checkpoint(tmp_path / "tiny")
    with library.workplace("other", "x"):
        check_refused("another process is adding a model", folder)
        assert left() == [".other.adding"]


def test_model_is_removed_with_its_measurements(home, tmp_path):
    made(checkpoint(tmp_path / "tiny"))
    library.note("tiny", library.MeasuredSpeed(2.0, 1.0, 3.0, 4))
    assert library.measurements()["tiny"].warm_ms == 1.0
    assert library.remove("tiny") > 10_000
    assert (model_folders.added(), library.measurements()) == ({}, {})


@pytest.mark.skipif(os.name == "nt", reason="links need a right that most users lack")
def test_linked_model_has_only_its_link_removed(home, tmp_path):
    made(checkpoint(tmp_path / "tiny"))
    elsewhere = (home / "tiny").rename(tmp_path / "elsewhere")
    (home / "tiny").symlink_to(elsewhere)
    assert library.remove("tiny") == 0
    assert (model_folders.added(), [*home.glob(".tiny*")]) == ({}, [])
    assert (elsewhere / "weights.safetensors").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model.safetensors", "has no .safetensors file"),
        ("tokenizer.json", "tokenizer.json: cannot be read (it is not a file)"),
        ("config.json", "config.json: cannot be read (it is not a file)"),
    ],
)
def test_pipe_in_model_keeps_nobody_waiting(home, tmp_path, name, said):
    folder = checkpoint(tmp_path / "tiny")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    check_refused(said, folder)
    assert left() == []


def test_measurements_that_cannot_be_read_are_none(home, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/models.json").write_text("{")
    assert library.measurements() == {}


def test_model_is_still_added_where_nothing_can_be_noted(home, tmp_path):
    (tmp_path / "state").touch()
    library.note("tiny", library.MeasuredSpeed(1, 1, 1, 1))
    assert made(checkpoint(tmp_path / "tiny"))[0].name == "tiny"


def test_damaged_record_is_shown_as_damaged(home, tmp_path):
    made(checkpoint(tmp_path / "tiny"))
    (home / "tiny/model.json").write_text("{")
    assert library.records()["tiny"].source.startswith("damaged")


def test_shipped_model_is_not_an_added_one(home):
    shutil.rmtree(home, ignore_errors=True)
    assert model_folders.added() == {}


@pytest.mark.parametrize(
    ("source", "order", "said"),
    [
        ("nowhere", {}, "is no source of a model"),
        ("http://192.0.2.1:8080", {}, ["another machine", "privacy.allow_network"]),
        ("http://192.0.2.1:8080", {"network": True}, "use https://"),
        ("mistral", {}, "privacy.allow_network"),
        ("mistral", {"network": True, "key": "sk-123"}, "not the key"),
        ("mistral", {"network": True, "precision": "int8"}, "is a server"),
        ("mistral", {"network": True, "prompt": "x"}, "no such format as 'x'; use one of qwen, "),
        ("mistral", {"network": True, "ca": "/none.pem"}, "--ca /none.pem: there is no such file"),
        ("mistral", {"network": True, "cert_key": __file__}, "give that with --cert"),
        ("mistral", {"network": True, "header": ("sk-123",)}, "write it as 'Name: value'"),
        ("http://127.0.0.1:8080", {"protocol": "gopher"}, "nothing speaks 'gopher'; use one of llama, "),
    ],
)
def test_servers_that_may_not_be_asked(home, source, order, said):
    check_refused(said, source, **order)


def test_provider_is_added_without_being_asked(home):
    record, shown = made("mistral", network=True, model="codestral-2508")
    assert (record.kind, record.protocol, record.model, record.key) == (
        "server",
        "mistral",
        "codestral-2508",
        "env:MISTRAL_API_KEY",
    )
    assert "will be sent to https://api.mistral.ai" in shown
    assert json.loads((home / "mistral/model.json").read_bytes())["address"] == "https://api.mistral.ai"


def test_gateway_is_spoken_to_as_provider_but_does_not_get_its_key(home, monkeypatch):
    asked = []
    monkeypatch.setattr(added, "probe", lambda record: asked.append(record) or replace(server(), protocol="inception"))
    record, _ = made("https://gateway.example", network=True, protocol="inception", header=("api-key: env:K",))
    assert (record.protocol, record.model, record.key) == ("inception", "mercury-edit-2", "")
    assert record.headers == asked[0].headers == {"api-key": "env:K"}
    assert asked[0].protocol == "inception"


def test_chat_only_server_proposes_next_edits(home, monkeypatch):
    monkeypatch.setattr(added, "probe", lambda record: replace(server("llada-2"), protocol=record.protocol))
    record, _ = made("http://127.0.0.1:30000", prompt="chat")
    assert (record.protocol, record.prompt, record.model) == ("chat", "chat", "llada-2")


def server(*names, note=""):
    offered = tuple(Served(name, "qwen", 4096) for name in names)
    return ProbedServer("http://127.0.0.1:8080", "a server", "llama", offered, note=note)


@pytest.mark.parametrize(
    ("order", "prompt", "told"),
    [
        ({}, "zeta-2", "answers in the format zeta-2, and not in qwen"),
        ({"prompt": "zeta"}, "zeta", "but not in this format (0 of 5 right): try --prompt zeta-2"),
        ({"prompt": "zeta-2"}, "zeta-2", "answers in its format: 6 of 6"),
    ],
)
def test_server_is_asked_in_format_that_its_model_answers_in(home, monkeypatch, order, prompt, told):
    monkeypatch.setattr(added, "probe", lambda *_: server("named-qwen"))
    monkeypatch.setattr(added, "served", lambda record, network: opened("zeta-2", record.prompt))
    record, shown = made("http://127.0.0.1:8080", **order)
    assert record.prompt == prompt
    assert told in shown


@pytest.mark.parametrize(
    ("order", "prompt", "told"),
    [
        ({}, "zeta-2", "answers in the format zeta-2, and not in qwen"),
        ({"prompt": "zeta"}, "zeta", "but not in this format (0 of 5 right): try --prompt zeta-2"),
        ({"prompt": "zeta-2"}, "zeta-2", "answers in its format: 6 of 6"),
    ],
)
def test_model_is_installed_in_format_that_it_answers_in(home, tmp_path, monkeypatch, order, prompt, told):
    monkeypatch.setattr(added, "asked_in", lambda engine, record, network, prompt: opened("zeta-2", prompt))

    def open_made(folder, record):
        assert not model_folders.added()
        return opened("zeta-2", record.prompt)

    model = add_model(checkpoint(tmp_path / "tiny"), open_made=open_made, **order)
    assert model.record.prompt == prompt
    assert told in model.note
    record = read_record(model_folders.resolve("tiny"))
    assert (record.prompt, record.kind) == (prompt, "next-edit")


def test_model_that_cannot_be_opened_is_listed_and_says_so(home, tmp_path):
    def open_made(folder, record):
        raise EngineError("no memory")

    model = add_model(checkpoint(tmp_path / "tiny"), open_made=open_made)
    assert model.problem == "no memory"
    assert model_folders.resolve("tiny")


def test_own_gateway_is_examined_although_spoken_to_as_provider(home, monkeypatch):
    monkeypatch.setattr(added, "probe", lambda record: replace(server("codestral-latest"), protocol="mistral"))
    monkeypatch.setattr(added, "served", lambda record, network: opened("qwen", "qwen"))
    _, shown = made("https://gateway.example", network=True, protocol="mistral")
    assert "answers in its format" in shown


@pytest.mark.parametrize(
    ("names", "model", "result"),
    [
        (["a"], "", "a"),
        (["a", "b"], "b", "b"),
        ([], "", ""),
        (["a", "b"], "", "choose one with --model, of a, b"),
        (["a"], "b", "has no model b: it has a"),
    ],
)
def test_local_server_is_asked_what_it_has(home, monkeypatch, names, model, result):
    monkeypatch.setattr(added, "probe", lambda *_: server(*names))
    if " " in result:
        check_refused(result, "http://127.0.0.1:8080", model=model)
    else:
        record, _ = made("http://127.0.0.1:8080", model=model)
        assert (record.model, record.protocol) == (result, "llama")
        assert record.name == "127.0.0.1-8080"
