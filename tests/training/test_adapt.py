"""Adapted checkpoints read as they did, keep what they knew of tokens, and refuse what our model has not."""

import json
from itertools import pairwise

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers

from mercury_engine.api import EngineError
from mercury_engine.model import provenance
from mercury_engine.model.config import ModelError
from mercury_engine.model.export import export
from mercury_engine.opening import open_model
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import BOS, CUR, EOM, MASK, PRE, SPECIALS
from mercury_training import merge
from mercury_training.adapt import adapt, recode
from mercury_training.corpus.shards import Corpus, CorpusFile, Split, token_type, write_split
from mercury_training.errors import TrainingError
from mercury_training.models import load
from mercury_training.rows.packing import RowShape
from mercury_training.train import run as train
from mercury_training.train.settings import Recipe, Start, TrainSettings
from mercury_training.vocabulary import LEAST, keeping, read_source
from tests.engine.model.test_gguf import WIDTH, fields, file_of, tensors, weights
from tests.engine.tiny import gap
from tests.training.small import write_corpus

FAMILIES = ("Llama", "Qwen2", "Qwen3")
MERGES = [("Ġ", "Ġ"), ("e", "r"), ("Ċ", "Ċ"), ("r", "e"), ("re", "t"), ("1", "2"), ("d", "e"), ("de", "f")]
OWN = {"<|endoftext|>": 0, "<|fim_prefix|>": 300, "<|fim_middle|>": 301, "<|im_start|>": 302}
ROWS = 320
"""More than there are tokens, as in checkpoints whose embeddings are padded."""


def tokenizer_json():
    """A byte-level vocabulary in the manner of Qwen's: bytes, merges, and special tokens before and behind them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    symbols = [*alphabet, *("".join(pair) for pair in MERGES)]
    return {
        "version": "1.0",
        "added_tokens": [{"id": id, "content": content, "special": True} for content, id in OWN.items()],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {symbol: number for number, symbol in enumerate(symbols, 1)},
            "merges": [" ".join(pair) for pair in MERGES],
        },
    }


def checkpoint(folder, family="Llama", *, shards=False, **changed):
    """A random model of a class of transformers, saved by it."""
    import transformers

    shape = {
        "vocab_size": ROWS,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 256,
    }
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**shape | changed)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * 0.3 + (weight.dim() == 1))
    model.save_pretrained(folder, max_shard_size="20KB" if shards else "1GB")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    return model


def logits_of(model, ids):
    hidden, _ = model(torch.tensor([ids]), torch.arange(len(ids))[None])
    return model.logits(hidden[0])


def origins(folder):
    """Of the tokens behind our special ones, their numbers in the checkpoint."""
    path = folder / "tokenizer.json"
    source = read_source(json.loads(path.read_text()), path)
    return torch.from_numpy(keeping(source, source.symbols).origins[len(SPECIALS) :])


def refused(folder, *words):
    with pytest.raises((TrainingError, ModelError)) as caught:
        adapt(folder, folder / "adapted")
    assert [word for word in (str(folder), *words) if word not in str(caught.value)] == []


def rewritten(folder, name, **changed):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 50_000.0}},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}, "hidden_act": "gelu"},
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_checkpoint_reads_as_it_did(family, changed, tmp_path):
    theirs = checkpoint(tmp_path, family, **changed)
    adapt(tmp_path, tmp_path / "ours")
    ours = load(tmp_path / "ours")
    kept = origins(tmp_path)
    chosen = torch.randint(len(kept), (40,), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = theirs(kept[chosen][None]).logits[0][:, kept]
        found = logits_of(ours, (chosen + len(SPECIALS)).tolist())[:, len(SPECIALS) :]
    assert ours.config.tied == changed.get("tie_word_embeddings", False)
    torch.testing.assert_close(found, expected, atol=2e-4, rtol=1e-4)


def test_shards_that_an_index_names_are_one_checkpoint(tmp_path):
    checkpoint(tmp_path / "one")
    checkpoint(tmp_path / "many", shards=True)
    assert (tmp_path / "many/model.safetensors.index.json").exists()
    one, many = (adapt(tmp_path / name, tmp_path / name / "out") for name in ("one", "many"))
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, many.state_dict()[name]), name


def test_precision_stays(tmp_path):
    checkpoint(tmp_path).to(torch.bfloat16).save_pretrained(tmp_path)
    adapt(tmp_path, tmp_path / "ours")
    assert {weight.dtype for weight in load_file(tmp_path / "ours/model.safetensors").values()} == {torch.bfloat16}


def test_special_tokens_begin_as_their_like_or_as_the_mean(tmp_path):
    theirs = checkpoint(tmp_path).get_input_embeddings().weight.detach()
    ours = adapt(tmp_path, tmp_path / "ours").embedding.weight
    kept = origins(tmp_path)
    likes = {BOS: "<|endoftext|>", EOM: "<|endoftext|>", PRE: "<|fim_prefix|>", CUR: "<|fim_middle|>"}
    for mine, other in likes.items():
        torch.testing.assert_close(ours[mine], theirs[OWN[other]])
    torch.testing.assert_close(ours[MASK], theirs[kept].mean(0))
    assert len(ours) == len(SPECIALS) + 256 + len(MERGES)


def test_tokenizer_is_that_of_the_engine_with_merges_of_the_checkpoint(tmp_path):
    checkpoint(tmp_path)
    adapt(tmp_path, tmp_path / "ours")
    tokenizer = Tokenizer.load(tmp_path / "ours/tokenizer.json")
    symbols = [tokenizer.symbol(token) for token in tokenizer.encode("def ret\n\n  12<|im_start|>")]
    assert symbols[:6] == ["def", "Ġ", "ret", "Ċ", "Ċ", "Ġ"]
    assert symbols[6:9] == ["Ġ", "1", "2"]
    assert "".join(symbols[9:]) == "<|im_start|>"
    assert tokenizer.decode(tokenizer.encode("größe = 'ü'\n")) == "größe = 'ü'\n"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"architectures": ["MistralForCausalLM"]}, ["MistralForCausalLM", "Qwen3ForCausalLM"]),
        ({"quantization_config": {"bits": 4}}, ["quantization_config"]),
        ({"intermediate_size": 64}, ["feed_forward", "(32, 48)", "(32, 64)"]),
        ({"num_hidden_layers": 3}, ["layers.2", "missing"]),
        ({"hidden_size": None}, ["config.json", "hidden_size is None", "download"]),
        ({"num_attention_heads": 0}, ["config.json", "num_attention_heads is 0", "download"]),
        ({"num_hidden_layers": "2"}, ["config.json", "num_hidden_layers is '2'", "download"]),
        ({"intermediate_size": None}, ["config.json", "intermediate_size is None", "download"]),
    ],
)
def test_unsupported_architecture_is_named(changed, words, tmp_path):
    checkpoint(tmp_path)
    rewritten(tmp_path, "config.json", **changed)
    refused(tmp_path, *words)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": {"type": "Unigram", "vocab": [["a", 0.0]]}},
        {"model": {"type": "BPE", "byte_fallback": True, "vocab": {"▁a": 0, "<0x0A>": 1}, "merges": []}},
        {"pre_tokenizer": {"type": "Whitespace"}},
    ],
)
def test_vocabulary_that_does_not_spell_bytes_is_refused(changed, tmp_path):
    checkpoint(tmp_path)
    rewritten(tmp_path, "tokenizer.json", **changed)
    refused(tmp_path, "byte-level BPE")


def test_missing_bytes_are_added(tmp_path):
    theirs = checkpoint(tmp_path).get_input_embeddings().weight.detach()
    model = tokenizer_json()["model"]
    for byte in ("ÿ", "q"):
        del model["vocab"][byte]
    rewritten(tmp_path, "tokenizer.json", model=model)
    ours = adapt(tmp_path, tmp_path / "ours").embedding.weight
    tokenizer = Tokenizer.load(tmp_path / "ours/tokenizer.json")
    assert tokenizer.decode_bytes(tokenizer.byte_ids) == bytes(range(256))
    assert tokenizer.decode(tokenizer.encode("query")) == "query"
    mean = theirs[list(model["vocab"].values())].mean(0)
    for byte in (0xFF, ord("q")):
        torch.testing.assert_close(ours[tokenizer.byte_ids[byte]], mean)


def test_token_of_a_text_that_is_spelled_like_a_special_one_is_no_model_for_ours(tmp_path):
    theirs = checkpoint(tmp_path).get_input_embeddings().weight.detach()
    model = tokenizer_json()["model"]
    model["vocab"]["<s>"] = 299
    rewritten(tmp_path, "tokenizer.json", model=model)
    ours = adapt(tmp_path, tmp_path / "ours").embedding.weight
    torch.testing.assert_close(ours[BOS], theirs[OWN["<|endoftext|>"]])


def pruned(folder, size):
    """The tokens of several bytes that are kept, most needed by the corpus."""
    adapt(folder / "theirs", folder / f"ours{size}", wanted=str(LEAST + size), counted=folder / "corpus")
    tokenizer = Tokenizer.load(folder / f"ours{size}/tokenizer.json")
    return [tokenizer.symbol(token) for token in range(LEAST, tokenizer.vocabulary)]


def test_most_frequent_tokens_stay_with_those_that_they_are_merged_from(tmp_path):
    write_corpus(tmp_path / "corpus")
    checkpoint(tmp_path / "theirs")
    assert pruned(tmp_path, 0) == []
    assert pruned(tmp_path, 1) == ["ĠĠ"]
    assert pruned(tmp_path, 4) == ["ĠĠ", "re", "ret"]
    assert pruned(tmp_path, 5) == ["ĠĠ", "re", "ret", "de", "def"]
    assert len(pruned(tmp_path, 99)) == len(MERGES)
    tokenizer = Tokenizer.load(tmp_path / "ours5/tokenizer.json")
    assert [tokenizer.symbol(token) for token in tokenizer.encode("def ret")] == ["def", "Ġ", "ret"]
    told = provenance.steps(tmp_path / "ours4")[-1]
    assert told.settings["vocabulary"] == LEAST + 3
    assert 0.5 < told.settings["coverage"] < 1


def test_vocabulary_of_an_earlier_model_gives_the_same_again(tmp_path):
    write_corpus(tmp_path / "corpus")
    checkpoint(tmp_path / "theirs")
    pruned(tmp_path, 4)
    adapt(tmp_path / "theirs", tmp_path / "again", wanted=str(tmp_path / "ours4/tokenizer.json"))
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "ours4" / name).read_bytes()
    with pytest.raises(TrainingError, match=r"has no token '.*'; name a tokenizer made from it"):
        adapt(tmp_path / "theirs", tmp_path / "other", wanted=str(tmp_path / "corpus/tokenizer.json"))


@pytest.mark.parametrize(
    ("wanted", "counted", "words"),
    [
        ("400", False, ["--counted"]),
        (None, True, ["--vocabulary N"]),
        ("tokenizer.json", True, ["--vocabulary N"]),
        ("319", True, ["319 tokens", "320"]),
        ("nowhere.json", False, ["nowhere.json"]),
    ],
)
def test_vocabulary_that_cannot_be_chosen_is_named(wanted, counted, words, tmp_path):
    checkpoint(tmp_path)
    write_corpus(tmp_path / "corpus")
    with pytest.raises((TrainingError, EngineError)) as caught:
        adapt(tmp_path, tmp_path / "ours", wanted=wanted, counted=tmp_path / "corpus" if counted else None)
    assert [word for word in words if word not in str(caught.value)] == []


def test_safetensors_beside_the_config_are_the_only_files_read(tmp_path):
    checkpoint(tmp_path)
    weights = tmp_path / "model.safetensors"
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../model.safetensors"}}))
    refused(tmp_path, "'../model.safetensors'")
    index.write_text(json.dumps({"metadata": {}}))
    refused(tmp_path, "model.safetensors.index.json", "weight_map is None")
    index.unlink()
    save_file(load_file(weights) | {"model.extra.weight": torch.zeros(2)}, weights)
    refused(tmp_path, "model.extra.weight")
    weights.write_bytes(b"cut short")
    refused(tmp_path, "model.safetensors", "download the checkpoint again")
    weights.rename(tmp_path / "pytorch_model.bin")
    refused(tmp_path, "model.safetensors", "only .safetensors are read")


def test_corpus_is_written_in_vocabulary_of_model(tmp_path):
    before = Corpus.open(write_corpus(tmp_path / "corpus"))
    checkpoint(tmp_path / "theirs")
    adapt(tmp_path / "theirs", tmp_path / "ours")
    recode(tmp_path / "corpus", tmp_path / "ours", tmp_path / "again")
    after = Corpus.open(tmp_path / "again")
    assert after.tokenizer.vocabulary != before.tokenizer.vocabulary
    assert len(list(after.edits())) == len(list(before.edits()))
    for split in ("train", "held_out"):
        old, new = getattr(before, split), getattr(after, split)
        assert len(old) == len(new)
        for number in range(len(old)):
            assert old.text(number, before.tokenizer) == new.text(number, after.tokenizer)


@pytest.mark.parametrize("rank", [0, 4])
def test_training_goes_on_from_an_adapted_model(rank, tmp_path):
    write_corpus(tmp_path / "corpus")
    checkpoint(tmp_path / "theirs")
    before = adapt(tmp_path / "theirs", tmp_path / "ours", context=128)
    recode(tmp_path / "corpus", tmp_path / "ours", tmp_path / "again")
    recipe = Recipe(before.config, RowShape(64, 24), RowShape(128, 48), 256, held_out=4)
    start = Start(model=tmp_path / "ours", rank=rank)
    settings = TrainSettings(data=tmp_path / "again", out=tmp_path / "run", recipe=recipe, start=start, steps=3)
    assert train.run(settings).step == 3
    after = load(tmp_path / "run/model")
    assert after.config == before.config
    moved = {n for n, w in after.state_dict().items() if not torch.equal(w, before.state_dict()[n].float())}
    assert "layers.0.attention.query.weight" in moved
    assert ("norm.weight" in moved) == (rank == 0)


def gguf_file(path):
    """A file like those of Qwen, with one matrix stored twice."""
    symbols = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES)]
    special = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    tokens, published = [*symbols, *special], weights()
    head = np.random.default_rng(1).normal(0, 0.3, (len(tokens), WIDTH)).astype(np.float32)
    published |= {"model.embed_tokens.weight": head, "lm_head.weight": head}
    tokenizer = {"tokens": tokens, "token_type": [1] * len(symbols) + [3] * len(special)}
    tokenizer["merges"] = [" ".join(pair) for pair in MERGES]
    described = fields("qwen2", **{f"tokenizer.ggml.{name}": value for name, value in tokenizer.items()})
    path.write_bytes(file_of(described, list(tensors(published, "qwen2"))))
    return dict(zip(tokens, head, strict=True))


def test_gguf_file_becomes_a_model_that_answers(tmp_path):
    """From the file to the model that ships, and the record of how."""
    head, corpus = gguf_file(tmp_path / "theirs.gguf"), write_corpus(tmp_path / "corpus")
    base, run, ours, shipped = (tmp_path / name for name in ("base", "run", "ours", "shipped"))
    before = adapt(tmp_path / "theirs.gguf", base, context=128, wanted=str(LEAST + 5), counted=corpus)
    tokenizer = Tokenizer.load(base / "tokenizer.json")
    assert before.config.tied
    for token, symbol in [(PRE, "<|fim_prefix|>"), (tokenizer.encode("def")[0], "def")]:
        assert (before.embedding.weight[token].float() - torch.tensor(head[symbol])).abs().max() < 0.02

    recode(corpus, base, tmp_path / "again")
    recipe = Recipe(before.config, RowShape(64, 24), RowShape(128, 48), 256, held_out=4)
    start = Start(model=base, rank=4)
    train.run(TrainSettings(data=tmp_path / "again", out=run, recipe=recipe, start=start, steps=2))
    merge.main([str(base), str(run / "factors.safetensors"), str(ours)])
    assert not torch.equal(load(ours).embedding.weight, before.embedding.weight.float())
    export(ours, shipped)

    opened = open_model(shipped)
    *_, answer = opened.fill(gap("def area(width):\n    ret$0\n"))
    assert answer.final
    assert opened.info().model == "ours"
    steps = provenance.steps(shipped)
    assert [step.command.rpartition(".")[2] for step in steps] == ["adapt", "merge", "export"]
    for step, next_step in pairwise(steps):
        assert next_step.read["model"] == step.wrote
    assert steps[0].read["checkpoint"] == provenance.digests(tmp_path / "theirs.gguf")
    assert steps[1].read["factors"] == provenance.digests(run / "factors.safetensors")
    assert steps[-1].wrote == provenance.digests(shipped)
    (base / "provenance.json").write_text("[1]")
    with pytest.raises(ModelError, match=r"provenance\.json: .*; make the model again"):
        merge.merge(base, run / "factors.safetensors", ours)


def test_training_refuses_a_corpus_of_another_vocabulary(tmp_path):
    write_corpus(tmp_path / "corpus")
    checkpoint(tmp_path / "theirs")
    model = adapt(tmp_path / "theirs", tmp_path / "ours", context=128)
    recipe = Recipe(model.config, RowShape(64, 24), RowShape(128, 48), 256, held_out=4)
    settings = TrainSettings(
        data=tmp_path / "corpus", out=tmp_path / "run", recipe=recipe, start=Start(model=tmp_path / "ours"), steps=1
    )
    with pytest.raises(TrainingError, match="adapt --corpus"):
        train.run(settings)


def test_wide_tokens_are_stored_wide(tmp_path):
    kind = token_type(151_936)
    tokens = np.array([1, 70_000, 151_935], kind)
    (tmp_path / "part").write_bytes(tokens.tobytes())
    document = CorpusFile("r", "a.py", "python", "MIT", 0, 3)
    assert write_split(tmp_path, "train", [(tmp_path / "part", [document])], kind) == 3
    assert Split.open(tmp_path, "train").tokens_of(0).tolist() == tokens.tolist()
    assert msgspec.msgpack.decode((tmp_path / "train.index").read_bytes())[0][-1] == 3
