"""The steps through files, by the real processes with a tiny model."""

import shutil
from pathlib import Path

from bench.latency import KEYS, Step, figures, long_files, visited
from mercury_engine.model.config import TINY
from mercury_training.models import create, save
from mercury_training.rows.fim_rows import FimRow

LINES = "".join(f"value_{number} = {number}\n" for number in range(120))


def row(path: str, prefix: str = LINES) -> FimRow:
    return FimRow(
        id=path,
        repo="owner/name",
        commit="",
        licence="",
        path=path,
        language="python",
        kind="single_line",
        prefix=prefix + "total = ",
        suffix="\n",
        middle="value_1 + value_2",
    )


def test_files_with_room_for_a_jump_are_visited_once():
    assert list(long_files([row("a.py"), row("short.py", ""), row("a.py"), row("b.py")])) == [row("a.py"), row("b.py")]


async def test_steps_are_answered_and_their_reading_is_counted(tmp_path):
    save(create(TINY, 0), tmp_path)
    shutil.copy(Path(__file__).parents[1] / "engine/golden/tokenizer.json", tmp_path)
    steps, usage = await visited(str(tmp_path), [row("a.py"), row("b.py")], rest=0.0, pause=0.0)
    assert [step.name for step in steps] == 2 * ["open", *KEYS * ["key"], "jump", "return"]
    assert sum(step.awaited for step in steps) > 0
    assert usage.most_mb > 0


def test_figures_are_those_of_the_steps():
    steps = [Step("key", ms, ms < 25, awaited=4, ahead=0) for ms in (10.0, 20.0, 30.0)]
    found = figures(steps)
    assert (found["n"], found["p50_ms"], found["p90_ms"], found["awaited"]) == (3, 20.0, 30.0, 4)
