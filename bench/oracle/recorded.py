"""Recorded answers of real next-edit models to public scenarios: by themselves, and as they reach the user.

    python -m bench.oracle.recorded SCENARIOS [MODEL ...]

SCENARIOS is the folder `server/eval/scenarios` of a checkout of cursortab/cursortab.nvim (MIT): texts with the edits
before, what is expected, and what models were asked and answered. A server gives the same answers in the region that
it is asked about; the first answer of each scenario counts. deltaChrF is 0 where an edit was due and none came;
score = deltaChrF/100 · harmonic mean(show, quiet).
"""

import argparse
import asyncio
import base64
import json
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bench.harness.client import RequestError
from bench.oracle.desk import AUTOMATIC, INVOKED, Buffer, Desk
from bench.oracle.edits import FORMATS, PATIENCE_SECONDS, EditRow, EditsOracle, answering, asked, changes, server_of
from mercury_ls.code.edits import TextEdit, applied
from mercury_ls.code.lexemes import minimal
from mercury_training.evaluate.metrics import delta_chrf
from mercury_training.progress import shown as progress

MODELS = {
    "zeta": "zeta",
    "zeta-2": "zeta-2",
    "mercuryapi": "mercury-edit",
    "sweep-next-edit-0.5B": "sweep-2",
    "sweep-next-edit-1.5B": "sweep-2",
    "sweep-next-edit-7B": "sweep-2",
}
"""The format in which each was asked."""
WAYS = {"on request": INVOKED, "typing": AUTOMATIC}


class Scenario(Struct, frozen=True):
    """`history` are the edits before: file, lines before and after. No edit is due if nothing is `expected`."""

    name: str
    language: str
    file: str
    text: str
    cursors: tuple[int, ...]
    history: tuple[tuple[str, str, str], ...]
    expected: str = ""


def scenario_of(name: str, source: str) -> Scenario:
    head, *parts = re.split(r"^-- (\S+) --\n", source, flags=re.MULTILINE)
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    fields = dict(re.findall(r"^([\w-]+): *(.*)$", head, re.MULTILINE))
    text = files["buffer.txt"]
    places = [f"{fields['row']}:{fields['col']}", *filter(None, fields.get("cursor-positions", "").split(","))]
    entries = re.split(r"^<\|file\|> *", files.get("history", ""), flags=re.MULTILINE)[1:]
    return Scenario(
        name=name,
        language=fields["language"],
        file=fields["file"],
        text=text,
        cursors=tuple(_offset(text, *map(int, place.split(":"))) for place in places),
        history=tuple(map(_entry, entries)),
        expected=files.get("expected", ""),
    )


def _offset(text: str, row: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: row - 1]) + min(column, len(lines[row - 1]))


def _entry(source: str) -> tuple[str, str, str]:
    file, _, lines = source.partition("\n")
    _, _, lines = lines.partition("<|old|>\n")
    before, _, after = lines.partition("<|new|>\n")
    return file.strip(), before, after


def answers(cassette: Path) -> Iterator[tuple[str, str]]:
    """Prompts and answers."""
    lines = [json.loads(line) for line in cassette.read_text(encoding="utf-8").splitlines() if line]
    bodies = [json.loads(base64.b64decode(line["body_b64"])) for line in lines if "body_b64" in line]
    for question, reply in zip(bodies[::2], bodies[1::2], strict=True):
        prompt = question["messages"][-1]["content"] if "messages" in question else question["prompt"]
        choice = reply["choices"][0]
        yield prompt, choice["text"] if "text" in choice else choice["message"]["content"]


def whole(form: str, text: str, prompt: str, answer: str) -> str:
    """The whole text as the answer makes it."""
    region = FORMATS[form].region(prompt).rstrip("\n")
    if region not in text:
        raise ValueError(f"the region that was asked about is not in the text: {region[:80]!r}")
    start = text.index(region)
    new = READ[form](prompt, answer).rstrip("\n")
    return text[:start] + new + text[start + len(region) :] if new.strip() else text


def _between_marks(_prompt: str, answer: str) -> str:
    region = answer.rpartition("<|editable_region_start|>\n")[2].partition("<|editable_region_end|>")[0]
    return region.replace("<|user_cursor_is_here|>", "")


def _until_updated(_prompt: str, answer: str) -> str:
    return answer.partition(">>>>>>> UPDATED")[0].replace("<|user_cursor|>", "")


def _continued(prompt: str, answer: str) -> str:
    begun = prompt[prompt.rindex("<|file_sep|>updated/") :].partition("\n")[2]
    return begun + answer.partition("<|file_sep|>")[0]


def _in_fence(_prompt: str, answer: str) -> str:
    fenced = re.search(r"\A```[^\n]*\n(.*?)\n?```\s*\Z", answer.strip(), re.DOTALL)
    return fenced[1] if fenced else ""


READ: dict[str, Callable[[str, str], str]] = {
    "zeta": _between_marks,
    "zeta-2": _until_updated,
    "sweep-2": _continued,
    "mercury-edit": _in_fence,
}


def hunks(before: str, after: str) -> Iterator[TextEdit]:
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start = len("".join(old[:i]))
            edit = minimal("".join(old[i:j]), "".join(new[k:m]))
            yield replace(edit, start=edit.start + start, end=edit.end + start)


class Result(Struct, frozen=True):
    """What became of one place: the text as it would be."""

    scenario: Scenario
    after: str

    @property
    def is_shown(self) -> bool:
        return self.after != self.scenario.text

    @property
    def likeness(self) -> float:
        return delta_chrf(self.scenario.text, self.after, self.scenario.expected) if self.is_shown else 0.0


async def answered(at: Desk, oracle: EditsOracle, scenario: Scenario, cursor: int, answer: str, kind: int) -> Result:
    """Through the language server, after the edits of the history."""
    empty = TextEdit(0, 0, "")
    due = tuple(hunks(scenario.text, answer))
    oracle.rows = [EditRow(scenario.name, scenario.file, scenario.language, scenario.text, empty, due)]
    buffers = [_edited(at, scenario)]
    buffer = buffers[0]
    here = buffer.snapshot()
    try:
        offer = await asyncio.wait_for(asked(at, buffer, cursor, kind), PATIENCE_SECONDS)
    except RequestError:
        offer = None
    edits = [*changes(offer, buffer.uri, here, buffer.unit)] if offer else []
    buffer.close()
    return Result(scenario, applied(scenario.text, sorted(edits, key=lambda edit: edit.start)))


def _edited(at: Desk, scenario: Scenario) -> Buffer:
    """The file, opened as it was and edited until it is as it is."""
    text, steps = scenario.text, []
    for file, before, after in reversed(scenario.history):
        start = text.find(after) if file == scenario.file and after else -1
        if start >= 0:
            steps.append((start, before, after))
            text = text[:start] + before + text[start + len(after) :]
    for file, before, after in scenario.history:
        if file != scenario.file:
            other = at.open(Path(file).name, scenario.language, before)
            other.replace(0, len(before), after)
    buffer = at.open(Path(scenario.file).name, scenario.language, text)
    for start, before, after in reversed(steps):
        change = minimal(before, after)
        buffer.replace(start + change.start, start + change.end, change.text)
    return buffer


def _figures(results: Sequence[Result]) -> dict[str, Any]:
    due = [result for result in results if result.scenario.expected]
    quiet = [result for result in results if not result.scenario.expected]
    show = sum(result.is_shown for result in due) / len(due)
    silent = sum(not result.is_shown for result in quiet) / len(quiet)
    likeness = statistics.fmean(result.likeness for result in due) / 100
    mean = 2 * show * silent / (show + silent) if show + silent else 0.0
    numbers = {"score": likeness * mean, "delta_chrf": 100 * likeness, "show": show, "quiet": silent}
    return {"n": len(due), "silent_n": len(quiet), **{name: round(value, 3) for name, value in numbers.items()}}


async def _measured(folder: Path, model: str) -> dict[str, dict[str, Any]]:
    form = MODELS[model]
    cases = [*_cases_of(folder, model)]
    found = {"alone": _figures([Result(scenario, answer) for scenario, _, answer in cases])}
    async with answering(EditsOracle(FORMATS[form])) as oracle, server_of(oracle, form) as at:
        for way, kind in WAYS.items():
            rows = progress(f"{model}, {way}", cases)
            found[way] = _figures([await answered(at, oracle, *case, kind) for case in rows])
    return found


def _cases_of(folder: Path, model: str) -> Iterator[tuple[Scenario, int, str]]:
    """Each place with the first answer there."""
    for path in sorted(folder.glob("*.txtar")):
        cassette = path.with_suffix("") / f"{model}.ndjson"
        if not cassette.exists():
            continue
        scenario = scenario_of(path.stem, path.read_text(encoding="utf-8"))
        prompt, answer = next(answers(cassette))
        after = whole(MODELS[model], scenario.text, prompt, answer)
        for cursor in scenario.cursors:
            yield scenario, cursor, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all if none is named")
    chosen = parser.parse_args()
    for model in chosen.models or MODELS:
        found = asyncio.run(_measured(chosen.folder, model))
        for way, numbers in found.items():
            print(f"{model:22}{way:12}" + "".join(f"  {name} {value}" for name, value in numbers.items()))
        print(msgspec.json.encode({"model": model, **found}).decode())


if __name__ == "__main__":
    main()
