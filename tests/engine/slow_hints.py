"""The definition of n-gram hints, slow and simple: the text that each row continues, and what followed it earlier."""

from mercury_engine.tokens.hints import ORDERS
from mercury_engine.tokens.vocabulary import CUR, EOM, HOLES, NEAR, PAD, PART, SPECIALS

__all__ = ["one_line", "slow_hints"]


def slow_hints(ids, anchor, spelled):
    """The hints of each row, as tokens."""
    texts, parts = texts_before(ids, anchor, spelled)
    runs = [[[ids[place] for place in text[-order:]] for order in ORDERS] for text in texts]
    followers = [row for row in range(1, len(ids)) if texts[row][-1:] == [row] and texts[row - 1]][::-1]

    def latest(row, column):
        run, typed = runs[row][column], parts.get(row, b"")
        alike = (place for place in followers if place <= row and runs[place - 1][column] == run)
        found = (ids[place] for place in alike if starts_as_typed(ids, place, typed, spelled))
        return next(found, PAD) if len(run) == ORDERS[column] else PAD

    return [[latest(row, column) for column in range(len(ORDERS))] for row in range(len(ids))]


def one_line(hints, ids, anchor, tokenizer):
    """The hints where the answer is one line: the text before the line end, then the end."""
    found = [list(row) for row in hints]
    for row in range(anchor, len(ids)):
        for column, token in enumerate(found[row]):
            text = tokenizer.decode([token]) if token >= len(SPECIALS) else ""
            if "\n" not in text:
                continue
            before = tokenizer.encode(text[: text.index("\n")])
            found[row][column] = before[0] if before else EOM
            if len(before) == 1 and ids[row + 1 : row + 2] == before:
                found[row + 1][column] = EOM
    return found


def texts_before(ids, anchor, spelled):
    """The rows of the text up to each row, itself last if it is text; and the typed bytes of a partial word."""
    texts, typed, part = [], {}, None
    for row, token in enumerate(ids):
        before = texts[row - 1] if row else []
        if part is not None and row <= anchor:
            typed[row] = typed[row - 1] + spelled[token]
            texts.append(before)
        elif token >= len(SPECIALS):
            texts.append([*before, row])
        elif at_cursor(ids, anchor) and token == CUR:
            texts.append(texts[last(ids[:row], NEAR) - 1])
        elif at_cursor(ids, anchor) and token == PART and row <= anchor:
            part, typed[row] = row, b""
            texts.append(before)
        elif not at_cursor(ids, anchor) and anchor is not None and row >= anchor and token in HOLES:
            marker = ids.index(token)
            texts.append(texts[marker - 1] if marker < anchor else [])
        else:
            texts.append([])
    return texts, typed


def at_cursor(ids, anchor):
    return anchor is not None and ids[anchor] not in HOLES


def last(ids, token):
    return len(ids) - 1 - ids[::-1].index(token)


def starts_as_typed(ids, place, typed, spelled):
    return b"".join(spelled[token] for token in ids[place : place + len(typed)]).startswith(typed)
