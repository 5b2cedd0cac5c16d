"""Recorded answers: scenarios as they are written down, and the whole text that an answer makes of one."""

import base64
import json

import pytest

from bench.oracle.recorded import Result, answers, hunks, scenario_of, whole
from mercury_ls.code.edits import applied

SOURCE = """\
A field became a list.
id: to-list
language: python
file: article.py
row: 2
col: 7
cursor-positions: 1:0, 9:9
-- buffer.txt --
tags: list[str]
print(tags)

-- history --
<|file|> article.py
<|old|>
tags: str
<|new|>
tags: list[str]
<|file|> other.py
<|old|>
<|new|>
x = 1
-- steps --
request-completion manual
-- expected --
tags: list[str]
print(*tags)

"""


def test_scenario_is_read():
    scenario = scenario_of("to-list", SOURCE.replace(", 9:9", ", 3:9"))
    assert (scenario.language, scenario.file) == ("python", "article.py")
    assert scenario.text == "tags: list[str]\nprint(tags)\n\n"
    assert [scenario.text[at:] for at in scenario.cursors] == ["ags)\n\n", scenario.text, "\n"]
    assert scenario.history == (("article.py", "tags: str\n", "tags: list[str]\n"), ("other.py", "", "x = 1\n"))
    assert scenario.expected == "tags: list[str]\nprint(*tags)\n\n"


@pytest.mark.parametrize(
    ("form", "prompt", "answer"),
    [
        (
            "zeta",
            "<|editable_region_start|>\nb<|user_cursor_is_here|>\nc\n<|editable_region_end|>\n```",
            "<|editable_region_start|>\nB\nc\n",
        ),
        ("zeta-2", "<<<<<<< CURRENT\nb<|user_cursor|>\nc\n=======\n<[fim-middle]>", "B\nc\n>>>>>>> UPDATED\n"),
        ("sweep-2", "<|file_sep|>current/a:1:2\nb\nc\n<|file_sep|>updated/a:1:2\n", "B\nc\n<|file_sep|>"),
        ("mercury-edit", "<|code_to_edit|>\nb\nc<|cursor|>\n<|/code_to_edit|>", "```\nB\nc\n```"),
    ],
)
def test_answer_makes_a_whole_text(form, prompt, answer):
    assert whole(form, "a\nb\nc\nd\n", prompt, answer) == "a\nB\nc\nd\n"


@pytest.mark.parametrize("after", ["a\nB\nc\n", "a\nc\nx\n", "", "x\ny\na\nb\nc\nz\n"])
def test_hunks_lead_from_one_text_to_the_other(after):
    before = "a\nb\nc\n"
    assert applied(before, [*hunks(before, after)]) == after


def test_unchanged_text_counts_as_no_edit():
    scenario = scenario_of("to-list", SOURCE.replace("9:9", "1:1"))
    assert not Result(scenario, scenario.text).is_shown
    assert Result(scenario, scenario.text).likeness == 0.0
    assert Result(scenario, scenario.expected).likeness == pytest.approx(100.0)


def test_prompts_and_answers_are_read_of_both_kinds(tmp_path):
    bodies = [
        {"prompt": "p"},
        {"choices": [{"text": "t"}]},
        {"messages": [{"content": "q"}]},
        {"choices": [{"message": {"content": "u"}}]},
    ]
    lines = [{"kind": "meta"}, *({"body_b64": base64.b64encode(json.dumps(body).encode()).decode()} for body in bodies)]
    (tmp_path / "m.ndjson").write_text("\n".join(map(json.dumps, lines)))
    assert [*answers(tmp_path / "m.ndjson")] == [("p", "t"), ("q", "u")]
