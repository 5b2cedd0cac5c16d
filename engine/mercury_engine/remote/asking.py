"""What a server is asked, and what its answer means: pure."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Context, Draft, Edit, EngineError, Gap, Regions, Rewrites, Rewritten, Snippet
from mercury_engine.decode.confidence import SHARED, UNCALIBRATED, likely_start
from mercury_engine.private_keys import mask_random_lines
from mercury_engine.prompts.cut import cut
from mercury_engine.prompts.dialects import Dialect
from mercury_engine.prompts.edits import EditFormat
from mercury_engine.prompts.edits.asked import Refused, Taken, has_marks, window_of
from mercury_engine.prompts.fim import by_words, fim_prompt, whole_head
from mercury_engine.prompts.lines import shared_ends
from mercury_engine.prompts.pieces import Mark, Prompt, Special
from mercury_engine.redaction import mask_secrets
from mercury_engine.remote.heard import StreamedText
from mercury_engine.remote.protocols import Ask, ServerProtocol

ASSUMED = 0.35
"""P(accept) of an answer whose server gives no log probabilities: shown, until rejections raise the bar above it."""

CHARACTERS_PER_TOKEN = 3
"""Cautious, so that a prompt fits: code has three to four."""

SHARE_OF_SUFFIX = 4
MASKS = re.compile(r"\*{6,}")
SHOWN = 80


Answer = TypeVar("Answer", Draft, Rewrites)
Asked = TypeVar("Asked", Gap, Regions)


class Attempt(Struct, Generic[Answer], frozen=True):
    """A question to a server. `show` reads its answer; None as long as nothing in it can be shown. `rewrites` says that
    the answer is a text that is there already, with changes: it means something only as a whole."""

    protocol: ServerProtocol
    ask: Ask
    show: Callable[[StreamedText], Answer | None]
    sent: str
    forced: str = ""
    rewrites: bool = False


def count(text: str) -> int:
    """About how many tokens a text has, for a model whose tokenizer is not here."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def masked_gap(gap: Gap) -> Gap:
    """Without keys and passwords, for a server on another machine. Who asks over HTTP may have cut a piece out of a
    key."""
    before, after = _hidden(gap.before, gap.after)
    return replace(_masked(gap), before=before, after=after)


def masked_regions(regions: Regions) -> Regions:
    windows = []
    for region in regions.regions:
        above, old, below = _hidden(region.above, region.old, region.below)
        windows.append(replace(region, above=above, old=old, below=below))
    return replace(_masked(regions), regions=tuple(windows))


def _masked(question: Asked) -> Asked:
    return replace(
        question,
        snippets=tuple(Snippet(snippet.path, _hide(snippet.text)) for snippet in question.snippets),
        edits=tuple(edit.with_texts(_hide) for edit in question.edits),
        diagnostics=tuple(
            replace(diagnostic, message=_hide(diagnostic.message)) for diagnostic in question.diagnostics
        ),
    )


def _hidden(*parts: str) -> Iterator[str]:
    """The parts of one text, which keep their lengths."""
    text, start = _hide("".join(parts)), 0
    for part in parts:
        yield text[start : start + len(part)]
        start += len(part)


def _hide(text: str) -> str:
    return mask_random_lines(mask_secrets(text))


def filling(
    protocol: ServerProtocol,
    dialect: Dialect,
    gap: Gap,
    *,
    hides: bool,
    address: str,
    budget: int,
    suffix_lines: int | None = None,
) -> Iterator[Attempt[Draft]]:
    """First with the word before the cursor taken back, so that the model sees whole tokens; if it begins with another
    word, once more from the cursor. `hides`: secrets are masked in the gap."""
    for split in (by_words, whole_head):
        prompt = fim_prompt(
            dialect, gap, budget=budget - gap.most_tokens, count=count, split=split, suffix_lines=suffix_lines
        )
        _refuse_specials(prompt, address)
        stops = tuple(map(str, (*prompt.stops, *prompt.stop_tokens)))
        ask = Ask(prompt=prompt.text, tokens=prompt.most_tokens, stops=stops, seed=gap.seed)
        sent = _sent_to(address, prompt.text, gap.path, gap)
        yield Attempt(protocol, ask, _filler(gap, hides=hides), sent, prompt.forced)
        if not prompt.forced:
            return


def filling_unprompted(
    protocol: ServerProtocol, gap: Gap, *, hides: bool, address: str, budget: int
) -> Iterator[Attempt[Draft]]:
    """For servers that put the prompt together themselves."""
    room = (budget - gap.most_tokens) * CHARACTERS_PER_TOKEN
    suffix = _whole_lines(gap.after, room // SHARE_OF_SUFFIX)
    prefix = _last_lines(gap.before, (room - len(suffix)) * 2 // 3)
    snippets = _fitting(gap.snippets, room - len(suffix) - len(prefix)) if protocol.snippets or protocol.files else ()
    if protocol.files:
        files = "".join(protocol.files.format(path=snippet.path, text=snippet.text) for snippet in reversed(snippets))
        prefix = files + protocol.files.partition("{text}")[0].format(path=gap.path) + prefix
    ask = Ask(
        prompt=prefix,
        suffix=suffix,
        snippets=snippets,
        file=gap.path,
        language=gap.language,
        tokens=gap.most_tokens,
        stops=() if gap.block else ("\n",),
        seed=gap.seed,
    )
    everything = prefix + suffix + "".join(snippet.text for snippet in snippets if protocol.snippets)
    yield Attempt(protocol, ask, _filler(gap, hides=hides), _sent_to(address, everything, gap.path, gap))


def rewriting(
    protocol: ServerProtocol, form: EditFormat, sent: Regions, true: Regions, *, address: str, budget: int
) -> Iterator[Attempt[Rewrites]]:
    """For next-edit models, whose answer means something when it is whole, or has come back to the old text. `true` is
    the question before secrets were masked."""
    question, window = form.ask(sent, budget=budget, count=count), window_of(sent)
    _refuse_specials(question.prompt, address)
    old, restored = window.old, window_of(true).old

    def show(stream: StreamedText) -> Rewrites | None:
        is_whole = question.is_whole(stream.text, stream.end == "stop")
        rejoined = None if is_whole else question.rejoined(stream.text, stream.least)
        if rejoined is None and not (is_whole or stream.end):
            return None
        new = _with_secrets(old, restored, rejoined or question.read(stream.text, is_whole))
        stream.is_enough = is_whole or not isinstance(new, Refused)
        return Rewrites(0, (_rewritten(restored, new, stream),))

    prompt = question.prompt
    stops = tuple(map(str, (*prompt.stops, *prompt.stop_tokens)))
    ask = Ask(prompt=prompt.text, tokens=prompt.most_tokens, stops=stops)
    told = _sent_to(address, prompt.text, window.path, sent)
    yield Attempt(protocol, ask, show, told, prompt.forced, rewrites=True)


def _rewritten(old: str, new: Taken, stream: StreamedText) -> Rewritten:
    if isinstance(new, Refused):
        return Rewritten(old, complete=stream.is_enough, refused=new.reason)
    if new is None or new == old:
        return Rewritten(old, complete=True)
    probabilities = tuple(probability for _, probability in stream.tokens(stream.text))
    chance = UNCALIBRATED.p_accept(probabilities, complete=True) if probabilities else ASSUMED
    return Rewritten(new, probabilities, chance, complete=True)


def _filler(gap: Gap, *, hides: bool) -> Callable[[StreamedText], Draft | None]:
    def show(stream: StreamedText) -> Draft | None:
        text, is_whole = cut(gap, stream.text, finished=stream.end == "stop")
        stream.is_enough = is_whole
        if (hides and MASKS.search(text)) or has_marks(text, gap.before + gap.after):
            stream.is_enough = True
            return Draft(complete=True)
        if not (tokens := [*stream.tokens(text)]):
            return Draft(0, text, (), ASSUMED if text else 0.0, is_whole)
        return likely_start(text, tokens, SHARED, bar=gap.bar, complete=is_whole)

    return show


def _refuse_specials(prompt: Prompt, address: str) -> None:
    """Servers read special tokens in a string wherever they stand, also in the user's code. Marks are the business of
    their formats."""
    specials = {piece for piece in (*prompt.pieces, *prompt.stop_tokens) if not isinstance(piece, Mark)}
    for special in sorted(piece for piece in specials if isinstance(piece, Special)):
        own = sum(type(piece) is Special and piece == special for piece in prompt.pieces)
        if prompt.text.count(special) > own:
            raise EngineError(
                f"the code around the cursor contains {special}, which the model at {address} would take for its own"
                " sign: nothing was sent"
            )


def _with_secrets(old: str, true: str, new: str | Refused | None) -> str | Refused | None:
    """The new text with the secrets that were masked in the old one."""
    if old == true or not isinstance(new, str):
        return new
    head, tail = shared_ends(old, new)
    end = len(old) - tail
    if old[head:end] != true[head:end]:
        return Refused("it rewrites lines with a secret, which was not sent")
    return true[:head] + new[head : len(new) - tail] + true[end:]


def _sent_to(address: str, text: str, path: str, context: Context) -> str:
    """What of a question is in a text that goes to another program, for the user."""
    snippets = sum(_holds(text, snippet.text) for snippet in context.snippets)
    edits = sum(_holds(text, _changed(edit)) for edit in context.edits)
    mentions = sum(_holds(text, diagnostic.message) for diagnostic in context.diagnostics)
    parts = [
        f"{len(text):,} characters of {path}",
        *([f"{snippets} snippet{'s' * (snippets != 1)}"] if snippets else []),
        *([f"{edits} edit{'s' * (edits != 1)}"] if edits else []),
        *([f"{mentions} diagnostic{'s' * (mentions != 1)}"] if mentions else []),
    ]
    *head, last = parts
    return f"{', '.join(head)} and {last} to {address}" if head else f"{last} to {address}"


def _changed(edit: Edit) -> str:
    """The first line that the edit made or removed."""
    before, after = edit.before.splitlines(), edit.after.splitlines()
    return next((line for line in (*after, *before) if (line in before) != (line in after)), "")


def _holds(text: str, part: str) -> bool:
    part = part.strip()
    return bool(part) and (part[:SHOWN] in text or part[-SHOWN:] in text)


def _whole_lines(text: str, room: int) -> str:
    """The beginning of a text, up to the end of a line."""
    return text if len(text) <= room else text[: text.rfind("\n", 0, room) + 1] or text[:room]


def _last_lines(text: str, room: int) -> str:
    """The end of a text, from the start of a line."""
    if len(text) <= room:
        return text
    start = text.find("\n", len(text) - room - 1) + 1
    return text[start or len(text) - room :]


def _fitting(snippets: Sequence[Snippet], room: int) -> tuple[Snippet, ...]:
    lines = []
    for snippet in snippets:
        if len(snippet.text) <= room:
            lines.append(snippet)
            room -= len(snippet.text)
    return tuple(lines)
