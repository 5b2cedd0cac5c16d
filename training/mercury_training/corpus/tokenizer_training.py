"""The vocabulary: merges learned from a sample of the corpus, after the engine's reserved ids and byte alphabet."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import pre_tokenizers, trainers

from mercury_engine.tokens.tokenizer import Tokenizer, untrained
from mercury_engine.tokens.vocabulary import SPECIALS

VOCABULARY = 16_384


def train_tokenizer(texts: Iterable[str], path: Path, vocabulary: int = VOCABULARY) -> Tokenizer:
    """Learn `vocabulary` tokens, write them to `path`, and return them as the engine reads them.

    The pipeline is the engine's own: cl100k-style words, single digits, runs of indentation, nothing past a line's
    end. Every text is its own piece, so documents do not join.
    """
    tokenizer = untrained()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))
    return Tokenizer.load(path)
