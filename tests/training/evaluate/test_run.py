"""An evaluation scores what the engine says, keeps what it has finished, and names what is missing."""

import json
import os
import platform
from pathlib import Path

import msgspec
import pytest

from mercury_engine import model_folders
from mercury_engine.api import Draft, EngineInfo
from mercury_engine.model.config import TINY
from mercury_training import calibrate
from mercury_training.errors import TrainingError
from mercury_training.evaluate import command, contestants
from mercury_training.evaluate import run as evaluate
from mercury_training.evaluate import sets as evaluation_sets
from mercury_training.evaluate.contestants import Contestant, Subject, Suggestion, open_subject, suggest
from mercury_training.evaluate.held_out import Reading
from mercury_training.evaluate.run import Run
from mercury_training.evaluate.scores import Evaluated, figures, score, table
from tests.engine.test_opening import added
from tests.training.small import GOLDEN, fim_row

FAST = Suggestion("", 0.5, True, 10.0, 1.0, forwards=2, settled=6)


def row(number, kind="single_line", middle="width", **fields):
    return fim_row(id=str(number), kind=kind, prefix=f"size_{number} = ", middle=middle, **fields)


ROWS = [row(0), row(1, "multi_line", "[\n    1,\n]"), row(2, "random_span"), row(3, language="go", copy=True)]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "dev"
    path.mkdir()
    (path / "fim.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in ROWS))
    return path


class Knowing:
    """Says the same text always, and counts what that takes."""

    def __init__(self, text):
        self.text = text
        self.forwards = 0
        self.asked = []

    def fill(self, gap):
        self.asked.append(gap)
        for step in (1, 2):
            self.forwards += 1
            yield Draft(step, self.text if step == 2 else "?", (), 0.7, True, final=step == 2)

    def warm(self, request):
        self.forwards += 5
        yield

    def info(self):
        return EngineInfo("knowing", "knowing", "cpu", 2048)


def test_final_draft_counts_and_reading_is_measured_separately():
    engine = Knowing("width")
    found = suggest(Contestant("policy", engine, "low"), ROWS[0])
    assert (found.text, found.p_accept, found.complete) == ("width", 0.7, True)
    assert (found.forwards, found.settled) == (2, None)
    assert engine.asked[0].effort == "low"


def test_sessions_are_not_shared_by_contestants_or_rows():
    engines = [Knowing("x"), Knowing("x")]
    for name, engine in zip(("a", "b"), engines, strict=True):
        for number in (0, 1):
            suggest(Contestant(name, engine), ROWS[number])
    assert len({asked.session for engine in engines for asked in engine.asked}) == 4


@pytest.mark.parametrize(
    ("answer", "exact", "parses"),
    [("width", True, True), ("width  ", True, True), ("height", False, True), ("(", False, False)],
)
def test_answer_is_scored(answer, exact, parses):
    found = score("dev", "policy", ROWS[0], msgspec.structs.replace(FAST, text=answer), None)
    assert (found.exact, found.parses, found.passed) == (exact, parses, None)
    assert found.similarity <= 1.0
    assert (found.similarity == 1.0) == (answer == "width")


def evaluated(answers, **fields):
    """`answers`: for each (row, contestant) the text and its milliseconds."""
    results = [
        score("v1/fim", by, ROWS[number], msgspec.structs.replace(FAST, text=text, milliseconds=ms), None)
        for (number, by), (text, ms) in answers.items()
    ]
    base = {"model": "m", "device": "cpu", "parameters": 5, "subject": "policy", "readings": [], "reasons": {}}
    return Evaluated(**base | {"results": results} | fields)


def test_figures_are_shares_medians_and_paired_ratios():
    found = figures(
        evaluated(
            {
                (0, "policy"): ("width", 10.0),
                (0, "ar"): ("width", 30.0),
                (3, "policy"): ("height", 20.0),
                (3, "ar"): ("width", 20.0),
                (1, "policy"): ("[]", 50.0),
                (0, "copy"): ("", 1.0),
                (0, "ngram"): ("width", 1.0),
            },
            readings=[Reading("python", 16.0, 10), Reading("go", 4.0, 10)],
            reasons={"unverified_single_line_em": "not asked"},
        )
    )
    assert (found["model"], found["params"], found["set"], found["n"]) == ("m", 5, "v1/fim", 3)
    assert (found["single_line_em"], found["multi_line_em"], found["random_span_em"]) == (0.5, 0.0, None)
    assert found["single_line_em_not_copied"] == 1.0
    assert found["ar_single_line_em"] == 1.0
    assert (found["copy"]["single_line_em"], found["ngram"]["single_line_em"]) == (0.0, 1.0)
    assert (found["ms_per_suggestion"], found["ms_per_suggestion_ar"]) == (15.0, 25.0)
    assert found["speedup_over_ar"] == 2.0
    assert found["intervals"]["speedup_over_ar"] == [1.0, 3.0]
    assert found["accepted_per_forward"] == 3.0
    assert found["bits_per_byte"] == 1.0
    assert found["ece"] == pytest.approx(0.5 - 1 / 3, abs=1e-4)
    assert found["reasons"]["unverified_single_line_em"] == "not asked"
    assert "random_span_em" in found["reasons"]
    assert found["intervals"]["single_line_em"][0] < 0.5 < found["intervals"]["single_line_em"][1]


def test_missing_figures_have_a_reason():
    found = figures(evaluated({}))
    missing = {name for name, value in found.items() if value is None}
    assert {"single_line_em", "ece", "bits_per_byte", "ms_per_suggestion"} <= missing
    assert set(found["reasons"]) == missing


def test_table_names_kinds_languages_and_rivals():
    shown = table(evaluated({(0, "policy"): ("width", 10.0), (3, "policy"): ("x", 1.0), (0, "copy"): ("", 1.0)}))
    assert " 50.0% [9.5%, 90.5%]" in next(line for line in shown.split("\n") if "policy single_line" in line)
    assert "    go" in shown
    assert "copy single_line" in shown


def last_line(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


WANTED = {
    *("model", "params", "bits_per_byte", "humaneval_infilling_single_line", "single_line_em", "multi_line_em"),
    *("random_span_em", "ar_single_line_em", "unverified_single_line_em", "accepted_per_forward"),
    *("ms_per_suggestion", "ms_per_suggestion_ar", "ece", "n", "copy", "ngram", "reasons"),
}


def test_last_line_is_json_with_all_that_is_wanted(folder, capsys):
    command.main(["--model", "fake", "--set", str(folder)])
    found = last_line(capsys)
    assert set(found) >= WANTED
    assert (found["n"], found["bits_per_byte"]) == (4, None)
    assert found["reasons"]["bits_per_byte"].startswith("without weights")


def test_limit_takes_the_same_rows_every_time_and_grows(folder, tmp_path):
    seen = []
    for limit in (1, 2, 2, None):
        found = evaluate.evaluate(Run(model="fake", sets=(folder,), limit=limit))
        seen.append({result.id for result in found.results})
    assert [len(ids) for ids in seen] == [1, 2, 2, 4]
    assert seen[0] < seen[1] == seen[2] < seen[3]


def test_interrupted_evaluation_goes_on(folder, tmp_path, monkeypatch):
    ledger = tmp_path / "results.jsonl"
    run = Run(model="fake", sets=(folder,), results=ledger)
    whole = evaluate.evaluate(run)
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:6]) + lines[6][:20])
    asked = []
    monkeypatch.setattr(evaluate, "suggest", lambda who, row: asked.append((who.name, row.id)) or suggest(who, row))
    again = evaluate.evaluate(run)
    assert len(asked) == len(lines) - 6
    assert [(r.id, r.by, r.exact) for r in again.results] == [(r.id, r.by, r.exact) for r in whole.results]
    asked.clear()
    evaluate.evaluate(run)
    assert asked == []


def test_results_of_another_model_are_not_mixed_in(folder, tmp_path, monkeypatch):
    run = Run(model="fake", sets=(folder,), results=tmp_path / "results.jsonl")
    evaluate.evaluate(run)
    other = Subject(Knowing("x").info(), "other", None, {"policy": Contestant("policy", Knowing("x"))})
    monkeypatch.setattr(evaluate, "open_subject", lambda model, costs: other)
    with pytest.raises(TrainingError, match="name another file"):
        evaluate.evaluate(run)


def test_rivals_take_turns(folder, monkeypatch):
    order = []
    ways = {name: Contestant(name, Knowing("x")) for name in ("policy", "ar", "unverified", "copy", "ngram")}
    monkeypatch.setattr(evaluate, "open_subject", lambda model, costs: Subject(Knowing("x").info(), "", 1, ways))
    monkeypatch.setattr(evaluate, "suggest", lambda who, row: order.append((row.id, who.name)) or FAST)
    evaluate.evaluate(Run(model="x", sets=(folder,)))
    by_row = {}
    for number, name in order:
        by_row.setdefault(number, []).append(name)
    first = [names[0] for names in by_row.values() if "ar" in names]
    assert set(first) == {"policy", "ngram"}, "forwards and backwards"
    assert "ar" not in by_row["2"], "spans are not compared"


def test_executed_answers_have_only_completers_as_rivals(monkeypatch):
    ways = {name: Contestant(name, Knowing("x")) for name in ("policy", "ar", "unverified", "copy", "ngram")}
    monkeypatch.setattr(evaluate, "open_subject", lambda model, costs: Subject(Knowing("x").info(), "", 1, ways))
    monkeypatch.setattr(evaluate, "read_humaneval", lambda source, name: [row(0)])
    found = evaluate.evaluate(Run(model="x", humaneval=Path("clone")))
    assert {result.by for result in found.results} == {"policy", "copy", "ngram"}


def test_folder_without_rows_is_named(tmp_path):
    with pytest.raises(TrainingError, match=r"neither fim\.jsonl"):
        evaluate.evaluate(Run(model="fake", sets=(tmp_path,)))


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        (command, ["--set", "{}"], r"evaluate: .*: neither fim\.jsonl .*; name a folder with one"),
        (command, ["--model", "{}/none"], r"evaluate: .*none"),
        (calibrate, ["--model", "{}/none", "--set", "{}"], r"calibrate: .*fim\.jsonl: cannot be read"),
        (evaluation_sets, ["build", "--corpus", "{}", "--out", "{}/sets"], r"evaluate\.sets: .*: cannot be read"),
    ],
)
def test_mistakes_of_the_user_are_reported_in_one_line(module, arguments, said, tmp_path):
    with pytest.raises(SystemExit, match=rf"mercury_training\.{said}"):
        module.main([argument.format(tmp_path) for argument in arguments])


def test_fake_engine_decodes_in_one_way(folder):
    with pytest.raises(TrainingError, match="leave out --decode ar"):
        evaluate.evaluate(Run(model="fake", decode="ar", sets=(folder,)))


def executable(folder):
    how = {"type": "doctest", "module": "shapes", "object": "two"}
    source = row(9, middle="2", exec=how)
    prefix = "def two():\n    '''\n    >>> two()\n    2\n    '''\n    return "
    path = folder / "fim_exec.jsonl"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(source, prefix=prefix)) + b"\n")


def test_code_is_not_run_where_nothing_can_be_isolated(folder, monkeypatch, capsys):
    executable(folder)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = evaluate.evaluate(Run(model="fake", sets=(folder,), humaneval_kinds=()))
    assert {result.passed for result in found.results} == {None}
    assert "run as root" in found.reasons["humaneval_infilling_single_line"]
    assert "run as root" in capsys.readouterr().err


@pytest.mark.skipif(platform.system() != "Linux" or os.geteuid() != 0, reason="namespaces need Linux and root")
def test_rows_that_can_be_run_are_run(folder, capsys):
    executable(folder)
    command.main(["--check", "--set", str(folder)])
    assert capsys.readouterr().out.splitlines() == [
        "dev/fim: of 0, true 0, empty 0, pass 0 passed",
        "dev/fim_exec: of 1, true 1, empty 0, pass 0 passed",
    ]
    found = evaluate.evaluate(Run(model="fake", sets=(folder,)))
    assert {r.by: r.passed for r in found.results if r.set == "dev/fim_exec"} == dict.fromkeys(
        ("policy", "copy", "ngram"), False
    )


@pytest.mark.slow
def test_shipped_model_is_evaluated_through_its_engine(folder, tmp_path):
    from mercury_engine.model.export import export
    from mercury_training.models import create, save

    save(create(TINY, 0), tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(GOLDEN.read_bytes())
    export(tmp_path, tmp_path / "int8")
    found = evaluate.evaluate(Run(model=str(tmp_path / "int8"), sets=(folder,)))
    texts = {(r.id, r.by): r.suggestion.text for r in found.results}
    assert found.parameters == sum(p.numel() for p in create(TINY, 0).parameters())
    assert {by for _, by in texts} == {"policy", "ar", "unverified", "copy", "ngram"}
    assert all(texts[number, "policy"] == texts[number, "ar"] for number in "013"), "verified is autoregressive"
    assert all(r.suggestion.forwards == 1 for r in found.results if r.by == "unverified")
    assert all(r.suggestion.settled == r.suggestion.forwards for r in found.results if r.by == "ar")


def test_costs_of_forwards_may_be_those_of_another_machine(monkeypatch, folder, capsys):
    asked = []
    monkeypatch.setattr(evaluate, "open_subject", lambda model, costs: asked.append(costs) or open_subject("fake"))
    command.main(["--set", str(folder), "--costs", "8=117", "1=47"])
    assert (asked[0].rows, asked[0].milliseconds) == ((1, 8), (47.0, 117.0))
    for wrong in ("8", "0=5", "eight=5", "8=-1"):
        with pytest.raises(SystemExit):
            command.main(["--set", str(folder), "--costs", wrong])
        assert f"{wrong!r}: write a number of rows and its milliseconds, such as 8=117" in capsys.readouterr().err


def test_without_a_model_the_one_that_ships_is_evaluated(monkeypatch, folder, capsys):
    asked = []
    monkeypatch.setattr(model_folders, "resolve", lambda name: asked.append(name))
    command.main(["--set", str(folder)])
    assert asked == ["auto"]
    assert last_line(capsys)["n"] == 4


def test_added_model_is_evaluated_through_its_engine(folder, tmp_path):
    found = evaluate.evaluate(Run(model=str(added(tmp_path, parameters=123)), sets=(folder,), limit=1))
    assert (found.model, found.parameters) == ("tiny", 123)
    assert {result.by for result in found.results} == {"policy", "copy", "ngram"}
    assert all(result.suggestion.forwards for result in found.results if result.by == "policy")


def test_weights_identify_model(tmp_path):
    assert open_subject("fake").weights == "none"
    digests = set()
    for text in ("a", "b"):
        (tmp_path / "weights").write_text(text)
        digests.add(contestants._digest(tmp_path))
    assert len(digests) == 2
