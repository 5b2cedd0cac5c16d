"""The vocabulary that every model shares: the reserved tokens and the limits of the layout."""

from mercury_engine.prompts.languages import LANGUAGES

LAYOUT_VERSION = 1
"""Changes whenever the meaning of a row changes; a model names the version that it was trained for."""

CANVASES = (3, 7, 15, 31, 63)
"""The numbers of slots that a canvas may have: with the row before it, it fills a size that runtimes pad passes to.
Models learn canvases with one slot more, and fill these as well."""

MAXIMUM_PART = 32
"""Bytes of a partial word that the canvas spells again (token healing)."""

SPECIALS = (
    *("<bos>", "<pad>", "<mask>", "<eom>"),
    *("<suf>", "<pre>", "<near>", "<cur>", "<snip>", "<path>", "<edits>"),
    *("<line>", "<block>", "<region>"),
    "<part>",
    *(f"<hole{i}>" for i in range(8)),
    *("<old>", "</old>", "<del>", "<ins>", "<keep>"),
    *("<tool>", "</tool>", "<result>", "</result>", "<json>", "</json>"),
    *(f"<lang:{language}>" for language in LANGUAGES),
    *(f"<reserved{i}>" for i in range(5)),
)
"""Ids 0 to 63. The byte tokens behind `<part>` belong to the tokenizer, whose byte-level vocabulary has a symbol for
each of the 256 bytes."""

BOS, PAD, MASK, EOM = range(4)
SUF, PRE, NEAR, CUR, SNIP, PATH, EDITS = range(4, 11)
LINE, BLOCK, REGION = range(11, 14)
PART = 14
HOLES = range(15, 23)
OLD, OLD_END = 23, 24
INS = 26
