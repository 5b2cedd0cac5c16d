"""The prompts of other people's models, put together a second time: from what their authors publish, which
docs/MODELS.md names, and from nothing of ours. A case has whole texts, before and after each edit."""

from dataclasses import dataclass, field
from itertools import pairwise, takewhile

__all__ = ["ALONE", "FILLED", "REWRITTEN", "Case", "Change", "Complaint", "changed", "rows"]


@dataclass
class Change:
    """One edit of a file, as its whole text before and after."""

    path: str
    old: str
    new: str
    accepted: bool = False


@dataclass
class Complaint:
    """A diagnostic of the file at the cursor; rows and columns begin at 0."""

    row: int
    column: int
    severity: str
    message: str


@dataclass
class Case:
    """`text` begins at row `first` of the file `path`. Changes are oldest first, the best of the files is first."""

    path: str
    text: str
    cursor: int
    first: int = 0
    changes: list[Change] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)

    @property
    def row(self) -> int:
        return self.text.count("\n", 0, self.cursor)


def rows(text: str) -> list[str]:
    """Lines without their ends; a last line only if there is something in it."""
    parts = text.split("\n")
    return parts[:-1] if parts[-1] == "" else parts


def changed(change: Change) -> tuple[list[str], list[str], int, int]:
    """The rows before and after, how many at the top are the same, and how many below."""
    old, new = rows(change.old), rows(change.new)
    top = len([*takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))])
    rest = zip(reversed(old[top:]), reversed(new[top:]), strict=False)
    return old, new, top, len([*takewhile(lambda pair: pair[0] == pair[1], rest)])


def script(old: list[str], new: list[str]) -> list[str]:
    """The rows of a diff: of what is longest in common, removed ones before added ones."""
    if not old or not new:
        return [*("-" + row for row in old), *("+" + row for row in new)]
    lengths = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            same = old[i] == new[j]
            lengths[i][j] = lengths[i + 1][j + 1] + 1 if same else max(lengths[i + 1][j], lengths[i][j + 1])
    if lengths[0][0] == 0:
        return script(old, []) + script([], new)
    i = next(i for i in range(len(old)) if old[i] in new)
    j = new.index(old[i])
    return [*script(old[:i], new[:j]), " " + old[i], *script(old[i + 1 :], new[j + 1 :])]


def unified_hunk(change: Change) -> str:
    """Zed, crates/language/src/text_diff.rs: three rows of context, both numbers always written, the first row of a
    hunk counted from 1 even where the hunk has none of that side."""
    old, new, top, bottom = changed(change)
    above = old[max(top - 3, 0) : top]
    below = old[len(old) - bottom :][:3]
    body = script(old[top : len(old) - bottom], new[top : len(new) - bottom])
    lines = [*(" " + row for row in above), *body, *(" " + row for row in below)]
    start = top - len(above) + 1
    gone, come = (sum(line[0] in signs for line in lines) for signs in (" -", " +"))
    return f"@@ -{start},{gone} +{start},{come} @@\n" + "".join(line + "\n" for line in lines)


def zed_ranges(text: str, cursor_row: int, editable: int = 350, context: int = 150) -> tuple[int, int, int, int]:
    """Zed, crates/zeta_prompt/src/excerpt_ranges.rs without syntax ranges: the first and last row to rewrite, and to
    read."""
    lengths = [max(len(line.encode()) // 3, 1) for line in text.split("\n")]
    start = end = cursor_row
    tokens = max(editable * 3 // 4 - lengths[cursor_row], 0)
    while tokens and (start > 0 or end < len(lengths) - 1):
        can_go_up = start > 0
        if end < len(lengths) - 1:
            if lengths[end + 1] > tokens:
                break
            end += 1
            tokens -= lengths[end]
        if can_go_up and tokens:
            if lengths[start - 1] > tokens:
                break
            start -= 1
            tokens -= lengths[start]
    start, end = linewise(lengths, start, end, tokens + editable - editable * 3 // 4)
    return (start, end, *linewise(lengths, start, end, context))


def linewise(lengths: list[int], start: int, end: int, tokens: int) -> tuple[int, int]:
    while True:
        before = start, end
        can_go_down = end < len(lengths) - 1
        if tokens and start > 0 and lengths[start - 1] <= tokens:
            start -= 1
            tokens -= lengths[start]
        if tokens and can_go_down and lengths[end + 1] <= tokens:
            end += 1
            tokens -= lengths[end]
        if before == (start, end):
            return before


def zed_excerpt(case: Case) -> tuple[str, str, str, str]:
    """What is read above, rewritten up to the cursor, rewritten from there on, and read below. The line feed of the
    last row to rewrite belongs to what is below."""
    lines = case.text.split("\n")
    start, end, first, last = zed_ranges(case.text, case.row)
    begins = [sum(len(line) + 1 for line in lines[:row]) for row in (start, end, first, last)]
    top, bottom = begins[0], begins[1] + len(lines[end])
    parts = (begins[2], top), (top, case.cursor), (case.cursor, bottom), (bottom, begins[3] + len(lines[last]))
    above, head, tail, below = (case.text[a:b] for a, b in parts)
    return above, head, tail, below


def zeta_1(case: Case) -> str:
    """Zed, crates/zeta_prompt/src/zeta_prompt/zeta1.rs; the path of an edit in quotes, as the client of its time
    (crates/zeta/src/zeta.rs) wrote it and captured requests have it."""
    above, head, tail, below = zed_excerpt(case)
    edits = [f'User edited "{c.path}":\n```diff\n{unified_hunk(c)}\n```' for c in case.changes[-6:]]
    is_start = case.first == 0 and zed_ranges(case.text, case.row)[2] == 0
    return (
        "### Instruction:\nYou are a code completion assistant and your task is to analyze user edits and then rewrite "
        "an excerpt that the user provides, suggesting the appropriate edits within the excerpt, taking into account "
        "the cursor location.\n\n### User Edits:\n\n" + "\n\n".join(edits) + "\n\n### User Excerpt:\n\n"
        f"```{case.path}\n" + ("<|start_of_file|>\n" if is_start else "") + above + "<|editable_region_start|>\n"
        f"{head}<|user_cursor_is_here|>{tail}\n<|editable_region_end|>{below}\n```\n\n### Response:\n"
    )


def seed(case: Case, middle: str) -> str:
    """Zed, crates/zeta_prompt/src/zeta_prompt/seed_coder.rs `assemble_fim_prompt`: files, edits, the file itself. All
    of our files are cut out of longer ones."""
    above, _, _, below = zed_excerpt(case)
    suffix = "<[fim-suffix]>" + below
    prompt = suffix + ("" if suffix.endswith("\n") else "\n") + "<[fim-prefix]>"
    related = ""
    for path, text in reversed(case.files):
        related += f"<filename>{path}\n{text}"
        related += "" if related.endswith("\n") else "\n"
        related += "...\n"
    history = "<filename>edit_history\n" if case.changes else ""
    for change in case.changes[-6:]:
        history += "// User accepted prediction:\n" if change.accepted else ""
        history += f"--- a/{change.path}\n+++ b/{change.path}\n{unified_hunk(change)}"
    for section in (related, history):
        prompt += section + "\n" if section else ""
    return f"{prompt}<filename>{case.path}\n{above}{middle}<[fim-middle]>"


def zeta_2(case: Case) -> str:
    _, head, tail, _ = zed_excerpt(case)
    region = f"<<<<<<< CURRENT\n{head}<|user_cursor|>{tail}"
    return seed(case, region + ("" if region.endswith("\n") else "\n") + "=======\n")


def zeta_2_1(case: Case) -> str:
    """Zed, crates/zeta_prompt/src/multi_region.rs, `V0318SeedMultiRegions`."""
    _, head, tail, _ = zed_excerpt(case)
    region, cursor = head + tail, len(head)
    offsets = marker_offsets(region)
    out, is_placed = "", False
    for number, (start, end) in enumerate(pairwise(offsets), 1):
        out += f"<|marker_{number}|>"
        if not is_placed and start <= cursor <= end:
            is_placed = True
            out += region[start:cursor] + "<|user_cursor|>" + region[cursor:end]
        else:
            out += region[start:end]
    return seed(case, f"{out}<|marker_{len(offsets)}|>\n")


def marker_offsets(text: str, least: int = 6, most: int = 16) -> list[int]:
    if not text:
        return [0, 0]
    lines = rows(text) if len(text) > 1 else [""]
    starts = [sum(len(line) + 1 for line in lines[:row]) for row in range(len(lines))]
    offsets, since, row = [0], 0, 0
    while row < len(lines):
        gap, target = row - since, None
        good = next((at for at in range(row, min(row + 5, len(lines))) if is_good_start(lines[at])), row)
        is_start = lines[row].strip() and not lines[row - 1].strip() and len(lines) - good >= least
        if (gap >= least and is_start) or gap >= most:
            target = good
        if target is not None and starts[target] > offsets[-1]:
            offsets.append(starts[target])
            since, row = target, target + 1
        else:
            row += 1
    return [*offsets, len(text)] if offsets[-1] != len(text) else offsets


def is_good_start(line: str) -> bool:
    said = line.strip()
    if not said or said[0] in "}])":
        return False
    return said.rstrip(";") not in ("break", "continue", "return", "throw", "end")


def sweep_window(case: Case) -> tuple[list[str], int, int, str, str]:
    """Sweep, sweep-next-edit-v2-7B/inference.py `build_prompt`: the lines with their ends, the first line of the block
    and the one behind it, the block, and the same before the last edit."""
    lines = [line + "\n" for line in case.text.split("\n")]
    lines[-1] = lines[-1][:-1]
    lines = [line for line in lines if line] or [""]
    row = min(case.row, len(lines) - 1)
    top, bottom = max(row - 10, 0), min(row + 11, len(lines))
    block = "".join(lines[top:bottom])
    previous = block
    if case.changes and case.changes[-1].path == case.path:
        old, new, head, tail = changed(case.changes[-1])
        start, end = head - case.first, len(new) - tail - case.first
        if top <= start <= end <= bottom:
            gone = "".join(line + "\n" for line in old[head : len(old) - tail])
            if end == len(lines) and not case.changes[-1].old.endswith("\n"):
                gone = gone.removesuffix("\n")
            previous = "".join(lines[top:start]) + gone + "".join(lines[end:bottom])
    return lines, top, bottom, block, previous


def sweep_changes(case: Case, header: str) -> list[str]:
    """`extract_diff_parts` with one line of context, blank lines at both ends taken off, the last six changes that are
    more than white space (sweep-autocomplete 0.1.1, `format_recent_changes_and_prev_section`)."""
    blocks = []
    for change in case.changes:
        old, new, top, bottom = changed(change)
        if "".join(old[top : len(old) - bottom]).strip() == "".join(new[top : len(new) - bottom]).strip():
            continue
        above, below = old[max(top - 1, 0) : top], old[len(old) - bottom :][:1]
        before = "\n".join([*above, *old[top : len(old) - bottom], *below]).strip("\n")
        shown = [*above, *new[top : len(new) - bottom], *below]
        start = top - len(above) + 1
        name = header.format(path=change.path, start=start, end=max(start + len(shown) - 1, start))
        after = "\n".join(shown).strip("\n")
        blocks.append(f"<|file_sep|>{name}\noriginal:\n{before}\nupdated:\n{after}")
    return blocks[-6:]


def sweep_2(case: Case) -> str:
    """sweep-next-edit-v2-7B/inference.py and sweep-autocomplete 0.1.1, which share the template."""
    lines, top, bottom, block, previous = sweep_window(case)
    row = min(case.row, len(lines) - 1)
    at = case.cursor - len("".join(lines[:top]))
    current = block[:at] + "<|cursor|>" + block[at:]
    if current.endswith("\n") and previous.endswith("\n"):
        current, previous = current[:-1], previous[:-1]
    retrieved = ""
    if case.complaints:
        said = [f"{case.path}:{c.row + 1}:{c.column + 1}: {c.severity}: {c.message}\n" for c in case.complaints]
        retrieved += "\n<|file_sep|>diagnostics\n" + "".join(said[:25]) + "\n"
    for path, text in reversed(case.files):
        retrieved += f"\n<|file_sep|>{path}\n" + "\n".join(rows(text)[:25]) + "\n"
    place = f"{case.path}:{case.first + top + 1}:{case.first + bottom}"
    near = "".join(lines[max(row - 150, 0) : row + 150])
    return (
        f"<|file_sep|>{case.path}\n{near}{retrieved}\n"
        + "\n".join(sweep_changes(case, "{path}:{start}:{end}"))
        + f"\n<|file_sep|>original/{place}\n{previous}\n<|file_sep|>current/{place}\n{current}\n"
        f"<|file_sep|>updated/{place}\n" + sweep_prefill(case, block, at, top)
    )


def sweep_prefill(case: Case, block: str, at: int, top: int) -> str:
    """`compute_prefill`: the lines above the cursor's; after an insertion above, the first one and the blank lines that
    follow it."""
    before = block[:at]
    if not is_insertion_above(case):
        return before[: before.rfind("\n") + 1]
    first, feed, rest = before.partition("\n")
    return first + feed + "\n" * len([*takewhile(lambda character: character == "\n", rest)])


def is_insertion_above(case: Case) -> bool:
    if not case.changes or case.changes[-1].path != case.path:
        return False
    _, new, _, bottom = changed(case.changes[-1])
    grows = len(case.changes[-1].new) > len(case.changes[-1].old)
    return grows and len(new) - bottom <= case.first + case.row


def sweep_1(case: Case) -> str:
    """sweep-next-edit-1.5B/run_model.py `build_prompt`, over the block of the later generation; sweepai/vscode-nes
    src/local/completions.ts ends it with a line feed."""
    _, _, _, block, previous = sweep_window(case)
    parts = []
    for path, text in reversed(case.files):
        parts += [f"<|file_sep|>{path}", text.removesuffix("\n")]
    parts += sweep_changes(case, "{path}.diff")
    for name, text in (("original", previous), ("current", block)):
        parts += [f"<|file_sep|>{name}/{case.path}", text.removesuffix("\n")]
    return "\n".join([*parts, f"<|file_sep|>updated/{case.path}", ""])


def mercury(case: Case) -> str:
    """Inception's tags in the order of continuedev/continue (core/nextEdit) and Zed (mercury.rs): hunks with three rows
    of context under plain paths."""
    lines = case.text.split("\n")
    start, end = max(case.row - 10, 0), min(case.row + 10, len(lines) - 1)
    first, last = max(case.row - 200, 0), min(case.row + 200, len(lines) - 1)
    column = case.cursor - (case.text.rfind("\n", 0, case.cursor) + 1)
    marked = lines.copy()
    marked[case.row] = f"{lines[case.row][:column]}<|cursor|>{lines[case.row][column:]}"
    kind = "recently_viewed_code_snippet"
    out = [f"<|{kind}s|>"]
    for path, text in case.files:
        out += [f"<|{kind}|>", f"code_snippet_file_path: {path}", text.removesuffix("\n"), f"<|/{kind}|>"]
    below = marked[end + 1 : last + 1]
    if below and below[-1] == "":
        below.pop()
    out += [f"<|/{kind}s|>", "", "<|current_file_content|>", f"current_file_path: {case.path}", *marked[first:start]]
    out += ["<|code_to_edit|>", *marked[start : end + 1], "<|/code_to_edit|>", *below, "<|/current_file_content|>", ""]
    out += ["<|edit_diff_history|>"]
    for change in case.changes[-5:]:
        out += [f"--- {change.path}", f"+++ {change.path}", *unified_hunk(change).split("\n")]
    return "\n".join([*out, "<|/edit_diff_history|>", ""])


REWRITTEN = {
    "zeta": zeta_1,
    "zeta-2": zeta_2,
    "zeta-2.1": zeta_2_1,
    "sweep": sweep_1,
    "sweep-2": sweep_2,
    "mercury-edit": mercury,
}


def among(files: list[tuple[str, str]], form: str) -> str:
    return "".join(form.format(path=path, text=text) for path, text in files)


def qwen(prefix: str, suffix: str, path: str, files: list[tuple[str, str]]) -> str:
    """QwenLM/Qwen2.5-Coder, examples/Qwen2.5-Coder-repolevel-fim.py."""
    head = "<|repo_name|>myproject\n" + among(files, "<|file_sep|>{path}\n{text}\n") + f"<|file_sep|>{path}\n"
    return f"{head}<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"


def mellum(prefix: str, suffix: str, path: str, files: list[tuple[str, str]]) -> str:
    """JetBrains/Mellum-4b-base, model card, "with additional files as context"."""
    head = among(files, "<filename>{path}\n{text}\n") + f"<filename>{path}\n"
    return f"{head}<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>"


def starcoder(prefix: str, suffix: str, path: str, files: list[tuple[str, str]]) -> str:
    """The StarCoder 2 report, section on repository context and filling in the middle."""
    head = "<repo_name>myproject" + among(files, "<file_sep>{path}\n{text}") + "<file_sep><fim_prefix>"
    return f"{head}{path}\n{prefix}<fim_suffix>{suffix}<fim_middle>"


def codestral(prefix: str, suffix: str, path: str, files: list[tuple[str, str]]) -> str:
    """mistralai/mistral-common (suffix first), and continuedev/continue for other files."""
    head = among(files, "+++++ {path}\n{text}\n\n") + f"+++++ {path}\n"
    return f"[SUFFIX]{suffix}[PREFIX]{head}{prefix}"


def deepseek(prefix: str, suffix: str, path: str, files: list[tuple[str, str]]) -> str:
    """deepseek-ai/DeepSeek-Coder, README: files under comments with their names, then the tokens of an insertion."""
    head = among(files, "#{path}\n{text}\n") + f"#{path}\n"
    return f"{head}<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>"


ALONE = {
    "qwen": "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",  # QwenLM/Qwen2.5-Coder, README
    "codegemma": "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",  # ai.google.dev, CodeGemma prompts
    "starcoder": "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",  # StarCoder 2 report
    "starcoder1": "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",  # bigcode/tiny_starcoder_py, model card
    "falcon-tiny": "<|prefix|>{prefix}<|suffix|>{suffix}<|middle|>",  # TII's article on Falcon-H1-Tiny, "FIM format"
    "mellum": "<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",  # JetBrains/Mellum-4b-base, model card
    "deepseek": "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",  # deepseek-ai/DeepSeek-Coder, README
    "seed": "<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",  # Seed-Coder-8B-Base, model card
    "codellama": "<PRE> {prefix} <SUF>{suffix} <MID>",  # meta-llama/codellama, llama/generation.py
}
FILLED = {"qwen": qwen, "mellum": mellum, "starcoder": starcoder, "codestral": codestral, "deepseek": deepseek}
