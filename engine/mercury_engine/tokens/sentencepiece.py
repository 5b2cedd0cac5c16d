"""A SentencePiece BPE tokenizer from its pieces and their scores, for models without a `tokenizer.json`."""

from collections.abc import Collection, Sequence
from itertools import islice

from tokenizers import AddedToken, Tokenizer, models, normalizers

from mercury_engine.api import EngineError

UNKNOWN = "<unk>"
LONGEST = 64
"""In characters: the longest piece that is composed of two others."""
MOST_MERGES = 1 << 21


def of_pieces(pieces: Sequence[str], scores: Sequence[float], special: Collection[str]) -> Tokenizer:
    """A tokenizer that merges the pair with the highest-scoring whole first. Text that no piece spells falls back to
    bytes."""
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    candidates = (
        (score, piece[:cut], piece[cut:])
        for piece, score in zip(pieces, scores, strict=True)
        for cut in range(1, min(len(piece), LONGEST))
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    )
    merges = list(islice(candidates, MOST_MERGES + 1))
    if len(merges) > MOST_MERGES:
        raise EngineError(f"the tokenizer's pieces can be combined in more than {MOST_MERGES:,} ways")
    merges.sort(key=lambda merge: -merge[0])
    model = models.BPE(
        vocabulary,
        [(first, second) for _, first, second in merges],
        unk_token=UNKNOWN if UNKNOWN in vocabulary else None,
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer
