"""The shape of a model, read from a small JSON file, and the names of the files in its folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_engine.tokens.vocabulary import LAYOUT_VERSION, SPECIALS

CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"
CALIBRATION_FILE = "confidence.json"
FORMER_FIELDS = ("role_scalars", "softcap", "hints")
"""Written into the configs of models that had them, and as false or 0 into those of others."""


class ModelError(EngineError):
    """The files of a model cannot be used."""


Activation = Literal["silu", "gelu", "gelu_tanh"]


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields after `tied` are for third-party models: `layer_norm` instead of RMS norm, a feed-forward layer
    without a gate, and custom rotation frequencies, whose cosines and sines are scaled by `rope_scale`."""

    name: str
    width: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int
    context: int
    head_width: int = 64
    rope_theta: float = 10_000.0
    norm_epsilon: float = 1e-6
    qk_norm: bool = True
    qkv_bias: bool = False
    tied: bool = True
    layer_norm: bool = False
    gated: bool = True
    activation: Activation = "silu"
    output_bias: bool = False
    feed_forward_bias: bool = False
    embedding_scale: float = 1.0
    rope_frequencies: tuple[float, ...] = ()
    rope_scale: float = 1.0
    layout_version: int = LAYOUT_VERSION

    @property
    def parameters(self) -> int:
        """The number of parameters without those of the norms."""
        attention = self.width * self.head_width * 2 * (self.heads + self.kv_heads)
        layer = attention + 3 * self.width * self.feed_forward
        return self.layers * layer + self.vocabulary * self.width * (1 if self.tied else 2)


TINY = ModelConfig(
    name="tiny",
    width=64,
    layers=2,
    heads=4,
    kv_heads=2,
    head_width=16,
    feed_forward=128,
    vocabulary=512,
    context=512,
)


def read_config(path: Path) -> ModelConfig:
    try:
        fields = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        _refuse_former(fields, path)
        config = msgspec.convert({name: fields[name] for name in fields if name not in FORMER_FIELDS}, ModelConfig)
    except OSError as error:
        raise ModelError(f"{path}: cannot read the model's config ({error}); name a folder that has one") from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ModelError(f"{path}: {error}; correct the file or install the model again") from error
    _check(config, path)
    return config


def _refuse_former(fields: Mapping[str, Any], path: Path) -> None:
    if former := [name for name in FORMER_FIELDS if fields.get(name)]:
        raise ModelError(
            f"{path}: {former[0]} is {fields[former[0]]!r}, which only earlier versions of mercury-ls compute; "
            "choose another model (`mercury-ls model use auto`), or train this one again"
        )


def write_config(config: ModelConfig, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n")


def _check(config: ModelConfig, path: Path) -> None:
    sizes = ("width", "layers", "heads", "kv_heads", "head_width", "feed_forward", "vocabulary", "context")
    for field in (*sizes, "rope_theta", "norm_epsilon"):
        if getattr(config, field) <= 0:
            raise ModelError(f"{path}: {field} is {getattr(config, field)}; it must be positive")
    if config.heads % config.kv_heads:
        raise ModelError(f"{path}: kv_heads is {config.kv_heads}; it must divide heads, {config.heads}")
    if config.head_width % 2:
        raise ModelError(f"{path}: head_width is {config.head_width}; rotation needs an even number")
    if config.vocabulary < len(SPECIALS) + 256:
        raise ModelError(f"{path}: vocabulary is {config.vocabulary}; the special tokens and bytes alone are 320")
    if config.layout_version != LAYOUT_VERSION:
        raise ModelError(
            f"{path}: layout_version is {config.layout_version}, this version reads {LAYOUT_VERSION}; "
            "install the version of mercury-ls that the model was trained for"
        )
