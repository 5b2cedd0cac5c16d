"""Models that are asked in a format that they were not trained on are caught, whichever it is."""

from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from mercury_engine.api import EngineError, EngineInfo
from mercury_engine.prompts.dialects import DIALECTS, Dialect
from mercury_engine.prompts.edits import FORMATS
from mercury_engine.prompts.edits.chat import CHAT_EDIT
from mercury_engine.prompts.edits.inception import INCEPTION_EDIT
from mercury_engine.remote import asking
from mercury_engine.remote.heard import StreamedText
from mercury_engine.remote.protocols import Event, protocol_named
from mercury_ls.models.canary import CURSOR, GAPS, REWRITES, KnownGap, examined, judged, told

OPENAI = protocol_named("openai")
FORMS = {form.name: form for form in (*DIALECTS, *FORMATS, INCEPTION_EDIT, CHAT_EDIT)}
EDITS = [name for name, form in FORMS.items() if not isinstance(form, Dialect)]
FAMILIES = ["qwen", *EDITS]
"""All dialects of gaps answer with nothing but the text of the gap."""


def rewritten(rewrite):
    first, feed, rest = rewrite.below.partition("\n")
    return rewrite.above + rewrite.after + (rewrite.due or first) + feed + rest


def spoken(family, question):
    """What a model of the family answers that knows what is right."""
    if isinstance(question, KnownGap):
        middle = question.right_lines[0]
        before, _, after = question.text.partition(CURSOR)
        new = before + middle + after
    else:
        middle, new = question.due, rewritten(question)
    if isinstance(FORMS[family], Dialect):
        return middle
    if family == "sweep-2":  # continues behind the lines above the cursor's
        cursor = (
            question.text.index(CURSOR) if isinstance(question, KnownGap) else len(question.above + question.after) - 1
        )
        return new[new.rfind("\n", 0, cursor) + 1 :] + "<|endoftext|>"
    wrapped = {
        "zeta": "<|editable_region_start|>\n{}\n<|editable_region_end|>",
        "zeta-2": "{}\n>>>>>>> UPDATED\n",
        "zeta-2.1": "<|marker_1|>\n{}\n<|marker_2|>",
        "sweep": "{}\n<|endoftext|>",
        "mercury-edit": "```python\n{}\n```",
        "chat": "```python\n{}\n```",
    }
    return wrapped[family].format(new.rstrip("\n"))


class Model:
    """Of a family; it is asked in another format, and answers as it was trained to."""

    def __init__(self, family, form):
        self.family, self.form = family, FORMS[form]

    def info(self):
        is_dialect = isinstance(self.form, Dialect)
        return EngineInfo("server", self.family, "http", 4096, fills=is_dialect, rewrites=not is_dialect)

    def fill(self, gap):
        (question,) = [known for known in GAPS if known.text == f"{gap.before}{CURSOR}{gap.after}"]
        attempt = next(asking.filling(OPENAI, self.form, gap, hides=False, address="", budget=4096))
        yield replace(self._shown(attempt, question), step=1, final=True)

    def rewrite(self, regions):
        (region,) = regions.regions
        (question,) = [known for known in REWRITES if region.old == f"{known.above}{known.after}{known.below}"]
        attempt = next(asking.rewriting(OPENAI, self.form, regions, regions, address="", budget=4096))
        yield replace(self._shown(attempt, question), step=1, final=True)

    def _shown(self, attempt, question):
        said = StreamedText(attempt.forced)
        said.add(Event(attempt.forced + spoken(self.family, question), end="stop"))
        return attempt.show(said)


@contextmanager
def opened(family, form):
    yield Model(family, form)


def verdict(family, form, others=()):
    return judged(Model(family, form), others, lambda name: opened(family, name))


@pytest.mark.parametrize("family", FAMILIES)
def test_model_in_its_own_format_fits(family):
    assert (found := verdict(family, family)).fits, found
    assert "answers in its format: 6 of 6" in str(found)


ALIKE = {("mercury-edit", "chat"), ("chat", "mercury-edit")}
WRONG = [(family, form) for family in FAMILIES for form in FAMILIES if family != form]


@pytest.mark.parametrize(("family", "form"), WRONG)
def test_model_in_another_format_is_caught_and_damages_nothing(family, form):
    found = verdict(family, form)
    assert found.fits is ((family, form) in ALIKE)
    marks = ("<|", "```", ">>>>>>>", "<<<<<<<")
    model = Model(family, form)
    questions = GAPS if isinstance(model.form, Dialect) else REWRITES
    for question in questions:
        (answer,) = question.asked(model)
        assert not any(mark in told(answer).text for mark in marks), told(answer).text


@pytest.mark.parametrize("family", FAMILIES)
def test_format_that_it_was_trained_on_is_found(family):
    form = "qwen" if family != "qwen" else "zeta"
    found = verdict(family, form, [name for name in FORMS if name != form])
    assert not found.fits
    assert found.better
    assert verdict(family, found.better).fits
    assert f"try --prompt {found.better}" in str(found)


def test_ignorant_model_is_weak():
    found = verdict("zeta-2.1", "zeta", ["qwen"])
    assert "is weak: 0 of 5 questions with a known answer are right (wrong in area.py, user.ts, say.py" in str(found)


def test_slow_model_is_not_examined_further():
    ticks = iter(range(0, 1000, 8))
    model = Model("qwen", "qwen")
    found = examined(model, 20.0, lambda: next(ticks))
    assert (found.right, found.asked) == (3, 3)


class Refusing(Model):
    """Cannot be asked in its format."""

    def fill(self, gap):
        raise EngineError("nothing answers")
        yield


def test_silent_model_is_not_called_weak():
    with pytest.raises(EngineError, match="nothing answers"):
        judged(Refusing("qwen", "qwen"), [], lambda name: opened("qwen", name))
    assert judged(Refusing("qwen", "qwen"), ["zeta"], lambda name: opened("zeta", name)).better == "zeta"


class Both(Model):
    """Fills gaps as Qwen does, and knows nothing of edits, or the other way round."""

    def __init__(self, is_filling):
        super().__init__("qwen", "qwen")
        self.is_filling, self.asked = is_filling, []

    def info(self):
        return EngineInfo("autoregressive", "both", "cpu", 4096, rewrites=True)

    def fill(self, gap):
        self.asked.append("fill")
        return Model("qwen" if self.is_filling else "zeta-2.1", "qwen").fill(gap)

    def rewrite(self, regions):
        self.asked.append("rewrite")
        return Model("zeta-2.1" if self.is_filling else "sweep", "sweep").rewrite(regions)


@pytest.mark.parametrize("fills", [True, False])
def test_model_that_does_both_is_asked_about_both(fills):
    model = Both(fills)
    found = judged(model, [], lambda name: opened("qwen", name))
    assert {*model.asked} == {"fill", "rewrite"}
    assert not found.fits


def test_time_for_all_questions_is_bounded():
    now = iter(range(1000))
    model = Model("zeta-2.1", "zeta")
    deadlines = []

    def asked(regions, rewrite=model.rewrite):
        deadlines.append(regions.deadline_ms)
        return rewrite(regions)

    model.rewrite = asked
    judged(model, FAMILIES, lambda name: opened("zeta-2.1", name), lambda: next(now) / 2)
    assert all(0 < ms <= 5000 for ms in deadlines)
    assert next(now) / 2 <= 12
