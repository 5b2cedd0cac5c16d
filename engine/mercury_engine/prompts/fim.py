"""The prompt of a model that fills gaps: other files, the text before the gap and the text after it, within a budget.

    <other files> <recent edits> <path> <prefix> lines before <suffix> lines after <middle>      (or suffix first)

What stays while the user types comes first, and the lines before are cut at multiples of 16 lines from the start of the
window, so that typing one more character changes nothing before the word that it belongs to.
"""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from mercury_engine.api import Edit, Gap, Snippet
from mercury_engine.prompts.dialects import Dialect
from mercury_engine.prompts.languages import language_sign
from mercury_engine.prompts.lines import bare_lines, lines_of
from mercury_engine.prompts.pieces import Piece, Prompt, Special, joined, tokens_of

QUANTUM_LINES = 16
MOST_EDITS = 8
LONGEST_EDIT_LINES = 24
SHARE_OF_SUFFIX, SHARE_OF_EDITS, SHARE_OF_PREFIX = 4, 8, 2
"""Parts of the budget: a quarter for the suffix, an eighth for edits, half for the prefix, and what they leave for
related code; the prefix gets what is left in the end."""

NEAR_TOKENS = 64
LAST_WORD = re.compile(r"(?: ?(?<!\w)\w++| ?(?<![^\w\s])[^\w\s]++|(?<!\s)\s++)\Z")


def fim_prompt(
    dialect: Dialect,
    gap: Gap,
    *,
    budget: int,
    count: Callable[[str], int],
    split: Callable[[str], tuple[str, str]],
    suffix_lines: int | None = None,
) -> Prompt:
    """The prompt for a gap, of at most `budget` tokens. Of the text behind it there is a quarter of the budget, at most
    `suffix_lines` below its line.

    `count` says how many tokens a text has; it sees the same texts again with the next key, so that it may remember.
    `split` takes back the word before the cursor from the head of its line: `(kept, forced)`.
    """
    before, after = gap.before, gap.after
    line_start = before.rfind("\n") + 1
    head, forced = split(before[line_start:])
    before = before[:line_start] + head

    remaining = budget - _overhead(dialect, gap.path, count)
    following = lines_of(after)[: None if suffix_lines is None else suffix_lines + 1]
    suffix = _first_that_fit(following, remaining // SHARE_OF_SUFFIX, count)
    step = max(remaining // SHARE_OF_EDITS, 1)
    prefix_share = min(-(-sum(map(count, _blocks_of(before))) // step) * step, remaining // SHARE_OF_PREFIX)
    edits = _edit_files(dialect, gap, remaining // SHARE_OF_EDITS, count)
    room = remaining - remaining // SHARE_OF_SUFFIX - remaining // SHARE_OF_EDITS - prefix_share
    files = [*_related_files(dialect, gap.snippets, room, count), *edits]
    spent = sum(tokens_of(joined(file), count) for file in files) + count(suffix)
    prefix = _lines_before(before, remaining - spent, count)

    template = dialect.among if files or (dialect.knows_paths and gap.path) else dialect.alone
    pieces = dialect.fill(
        template,
        path=gap.path,
        files=tuple(piece for file in files for piece in file),
        **(_around(gap, prefix, suffix, count) if dialect.is_ours else {"prefix": prefix, "suffix": suffix}),
    )
    return Prompt(
        pieces=joined([*dialect.start, *pieces]),
        forced=forced,
        stops=() if gap.block else ("\n",),
        stop_tokens=dialect.stop_tokens,
        most_tokens=gap.most_tokens + count(forced),
    )


def _around(gap: Gap, prefix: str, suffix: str, count: Callable[[str], int]) -> dict[str, str | tuple[Piece, ...]]:
    """What a row of ours tells apart around the gap, as in `tokens/layout.py`."""
    head, near = prefix.rfind("\n") + 1, _first_that_fit(lines_of(suffix), NEAR_TOKENS, count)
    signs = {
        "language": (Special(language_sign(gap.language)),),
        "mode": (Special("<block>" if gap.block else "<line>"),),
    }
    return {"prefix": prefix[:head], "head": prefix[head:], "near": near, "suffix": suffix[len(near) :], **signs}


def by_words(head: str) -> tuple[str, str]:
    """`split` for a model whose tokenizer is not here: the last word, signs or spaces of the line."""
    match = LAST_WORD.search(head)
    return (head[: match.start()], match[0]) if match else (head, "")


def whole_head(head: str) -> tuple[str, str]:
    """`split` for a program that cannot be made to begin its answer with a given text: nothing is taken back."""
    return head, ""


def _first_that_fit(parts: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The leading parts of at most `room` tokens; of a first part that is too long, its beginning."""
    fitting = sum(total <= room for total in accumulate(map(count, parts)))
    if fitting or not parts:
        return "".join(parts[:fitting])
    smaller = _smaller_parts(parts[0])
    return _first_that_fit(smaller, room, count) if len(smaller) > 1 else ""


def _last_that_fit(parts: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The trailing parts of at most `room` tokens; of a last part that is too long, its end."""
    fitting = sum(total <= room for total in accumulate(map(count, reversed(parts))))
    if fitting or not parts:
        return "".join(parts[len(parts) - fitting :])
    smaller = _smaller_parts(parts[-1])
    return _last_that_fit(smaller, room, count) if len(smaller) > 1 else ""


def _lines_before(text: str, room: int, count: Callable[[str], int]) -> str:
    """The end of the text, from a line whose number is a multiple of 16; of fewer if most of the room would be left."""
    for quantum in (QUANTUM_LINES, 4, 1):
        blocks = _last_that_fit(_blocks_of(text, quantum), room, count)
        if len(blocks) == len(text) or 2 * sum(map(count, _blocks_of(blocks, quantum))) >= room:
            break
    return blocks


def _smaller_parts(text: str) -> list[str]:
    """Lines of a block, pieces of a line, from its start so that they stay while the line grows."""
    lines = lines_of(text)
    if len(lines) > 1:
        return lines
    size = 64 if len(text) > 64 else 1
    return [text[i : i + size] for i in range(0, len(text), size)]


def _blocks_of(text: str, quantum: int = QUANTUM_LINES) -> list[str]:
    lines = lines_of(text)
    return ["".join(lines[i : i + quantum]) for i in range(0, len(lines), quantum)]


def _overhead(dialect: Dialect, path: str, count: Callable[[str], int]) -> int:
    """Tokens of the prompt around what is put in."""
    pieces = dialect.fill(dialect.among, path=path, prefix="", suffix="", files=())
    return tokens_of([*dialect.start, *pieces], count)


def _related_files(
    dialect: Dialect, snippets: Sequence[Snippet], room: int, count: Callable[[str], int]
) -> list[tuple[Piece, ...]]:
    """The best snippets that there is room for, the best of them nearest to the gap."""
    files = [dialect.fill(dialect.file, path=s.path, text=s.text) for s in snippets]
    return _fitting_files(files, room, count)[::-1]


def _edit_files(dialect: Dialect, gap: Gap, room: int, count: Callable[[str], int]) -> list[tuple[Piece, ...]]:
    """The newest edits as files of changed lines, oldest first."""
    changes = [(f"{edit.path}.diff", edit_lines(edit)) for edit in settled(gap)]
    files = [dialect.fill(dialect.file, path=name, text=change) for name, change in reversed(changes) if change]
    return _fitting_files(files, room, count)[::-1]


def settled(gap: Gap) -> list[Edit]:
    """The newest edits without the one that the user is typing: it stands before the cursor anyway, and would change
    with every key."""
    return [edit for edit in gap.edits if edit.path != gap.path or not _covers(edit, gap)][-MOST_EDITS:]


def _covers(edit: Edit, gap: Gap) -> bool:
    """Whether the lines that the edit left are those around the cursor; blanks at their ends make no difference."""
    start, own = gap.before.rfind("\n") + 1, [line.rstrip() for line in bare_lines(edit.after)]
    above = gap.before[:start].split("\n")[:-1]
    below = (gap.before[start:] + gap.after).split("\n", len(own))
    lines = [line.rstrip() for line in above[max(0, len(above) - len(own) + 1) :] + below[: len(own)]]
    return bool(own) and any(lines[at : at + len(own)] == own for at in range(len(lines) - len(own) + 1))


def edit_lines(edit: Edit) -> str:
    """The changed lines as in a unified diff, "" where they are too many to be of use."""
    before, after = bare_lines(edit.before), bare_lines(edit.after)
    return "" if len(before) + len(after) > LONGEST_EDIT_LINES else "\n".join(changed_lines(before, after))


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """All the lines, each behind the sign that it has in a unified diff."""
    lines: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [f" {line}" for line in before[a:b]]
        else:
            lines += [*(f"-{line}" for line in before[a:b]), *(f"+{line}" for line in after[c:d])]
    return lines


def _fitting_files(
    files: Sequence[tuple[Piece, ...]], room: int, count: Callable[[str], int]
) -> list[tuple[Piece, ...]]:
    groups: list[tuple[Piece, ...]] = []
    for file in files:
        size = tokens_of(joined(file), count)
        if size <= room:
            groups.append(file)
            room -= size
    return groups
