"""What is recommended fits into memory, and its time is the bytes of its weights over what memory gives."""

import itertools

import pytest

from mercury_engine import model_folders
from mercury_ls.models import recommended
from mercury_ls.models.recommended import Machine, RecommendedModel, bandwidth, choices, described, known


def model(millions, kind="fim"):
    return RecommendedModel(f"org/m{millions}", millions * 10**6, "Apache-2.0", kind, "completions")


@pytest.mark.parametrize(
    ("millions", "precision", "token_ms", "fit"),
    [(500, "int8", 24.1, "smooth"), (1500, "int4", 43.3, "on request"), (7000, "int4", 202.1, "too slow")],
)
def test_token_takes_as_long_as_reading_weights(millions, precision, token_ms, fit):
    found = choices(Machine(64 * 10**9, 30e9, 2), [model(millions)])
    (choice,) = found.choices
    assert (choice.precision, round(choice.token_ms, 1), choice.fit) == (precision, token_ms, fit)
    assert choice.commands == (f"mercury-ls model add org/m{millions}",)


def test_mixture_of_experts_reads_only_what_token_needs_and_needs_a_server():
    mixture = RecommendedModel(
        "org/Mix-12B", 12 * 10**9, "Apache-2.0", "fim", "completions", 2 * 10**9, "mellum", "a/Mix-GGUF:Q4_K_M"
    )
    (choice,) = choices(Machine(64 * 10**9, 30e9, 2), [mixture]).choices
    assert (choice.memory > 7 * 10**9, round(choice.token_ms)) == (True, 58)
    assert choice.commands == (
        "llama-server -hf a/Mix-GGUF:Q4_K_M -c 16384 -np 2 --cache-reuse 256 --port 8080",
        "mercury-ls model add http://127.0.0.1:8080 --prompt mellum",
    )


def test_jobs_are_told_apart():
    found = choices(Machine(64 * 10**9, 30e9, 2), [model(400), model(500, "next-edit")])
    said = "\n".join(described(found))
    assert said.index("completions, 16 tokens:") < said.index("org/m400") < said.index("next edits, 40 tokens:")
    assert said.index("next edits, 40 tokens:") < said.index("org/m500")
    assert "next edits: none is quick enough here" in "\n".join(described(choices(found.machine, [model(400)])))


def test_models_that_do_not_fit_are_not_recommended():
    found = choices(Machine(4 * 10**9, 30e9, 2), [model(500), model(7000)])
    assert [each.known.id for each in found.choices] == ["org/m500"]
    assert [each.id for each in found.too_large] == ["org/m7000"]


def test_diffusion_model_is_not_predicted():
    found = choices(Machine(64 * 10**9, 30e9, 2), [model(500, "diffusion")])
    assert (found.choices, [each.id for each in found.not_predicted]) == ((), ["org/m500"])
    assert "not predicted: org/m500" in "\n".join(described(found))


def test_unknown_memory_excludes_nothing():
    assert not choices(Machine(0, 30e9, 2), [model(7000)]).too_large


def test_list_is_short_and_says_that_it_is_predicted():
    said = "\n".join(described(choices(Machine(64 * 10**9, 30e9, 2), known())))
    assert "64.0 GB; 2 threads read 30 GB/s (measured just now)" in said
    assert "predicted, not measured, with a cached context; *on request*: too slow to follow your typing, fast" in said
    assert said.count("mercury-ls model add ") <= 13
    assert "too slow or too large here: " in said
    assert "llama-server -hf mradermacher/Mellum2-12B-A2.5B-Base-GGUF:Q4_K_M -c 16384" in said
    assert "a download of about 531 MB" in said


@pytest.mark.parametrize(("seconds", "own_seconds", "expected"), [(0.5, 1.0, 16_000), (2.0, 1.0, 8_000)])
def test_other_programs_do_not_make_the_machine_look_slow(seconds, own_seconds, expected):
    wall, own = (itertools.count(0.0, step) for step in (seconds, own_seconds))
    assert bandwidth(1, 8000, lambda: next(wall), lambda: next(own)) == expected


@pytest.mark.parametrize(
    ("installed", "first"), [((), "no model is installed"), (("quicksilver",), "this machine: 64.0 GB")]
)
def test_model_of_ours_that_is_not_installed_comes_first(monkeypatch, installed, first):
    monkeypatch.setattr(model_folders, "shipped", lambda: dict.fromkeys(installed))
    monkeypatch.setattr(recommended, "machine", lambda threads: Machine(64 * 10**9, 30e9, threads))
    said = [*described(recommended.recommend())]
    assert said[0].startswith(first)


def test_known_models_are_complete():
    for each in known():
        assert "/" in each.id
        assert each.parameters > 10**7
        assert each.kind in ("fim", "next-edit", "diffusion")
        assert each.licence
        assert bool(each.prompt) == bool(each.gguf)
        assert each.parameters * 4 >= each.loads > each.parameters / 2
        assert each.use
