"""What distinguishes the families of open diffusion models: one small record each, selected by a model's own files."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import EngineError


class Family(Struct, frozen=True, kw_only=True):
    """How a family reads a text with gaps. Tokens are given by name, because their ids differ from model to model.

    `shift`: the logits of a row are for the token after it. `attention`: `full` lets every token see all, and with
    `block-causal` each block of `block` tokens sees itself and the blocks before it. `length`: how an answer of
    unknown length is found: the family expands and deletes masks itself, or several lengths are tried, or, where
    nothing after the cursor can be seen, the text is continued until one of `ends`. `bos` and `eos` surround the
    prompt. `most_tokens` is what the family was trained on. Within a block of a family with a `window`, tokens are
    settled window after window.
    """

    name: str
    mask: str
    length: Literal["expand", "try", "continue"]
    attention: Literal["full", "block-causal"] = "full"
    shift: bool = False
    block: int = 0
    window: int = 0
    bos: str = ""
    eos: str = ""
    expand: str = ""
    delete: str = ""
    ends: tuple[str, ...] = ()
    most_tokens: int = 2048

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens that it needs."""
        return tuple(name for name in (self.mask, self.bos, self.eos, self.expand, self.delete) if name)


DREAM = Family(name="dream", mask="<|mask|>", length="try", shift=True, bos="<|beginoftext|>", eos="<|endoftext|>")
"""Dream, Dream-Coder and DiffuCoder."""

DREAM_ON = replace(DREAM, name="dreamon", length="expand", expand="<|expand|>", delete="<|endoftext|>")

OPEN_DCODER = Family(name="open-dcoder", mask="<M>", length="try", shift=True, most_tokens=4096)

LLADA = Family(
    name="llada", mask="<|mdm_mask|>", length="try", bos="<|startoftext|>", eos="<|endoftext|>", most_tokens=4096
)

TINY_A2D = Family(name="tiny-a2d", mask="<|mask|>", length="try", most_tokens=1024)
"""Its mdlm checkpoints."""

TINY_A2D_BLOCKS = Family(
    name="tiny-a2d-bd3lm",
    mask="<|mask|>",
    length="continue",
    attention="block-causal",
    block=32,
    ends=("<|im_end|>", "<|endoftext|>"),
    most_tokens=1024,
)

SDAR = Family(
    name="sdar",
    mask="<|MASK|>",
    length="continue",
    attention="block-causal",
    block=4,
    ends=("<|endoftext|>", "<|im_end|>"),
    most_tokens=4096,
)

FAST_DLLM = Family(
    name="fast-dllm-v2",
    mask="|<MASK>|",
    length="continue",
    attention="block-causal",
    shift=True,
    block=32,
    window=8,
    ends=("<|im_end|>", "<|endoftext|>"),
    most_tokens=4096,
)

STABLE_DIFFCODER = Family(
    name="stable-diffcoder",
    mask="<[MASK_TOKEN]>",
    length="continue",
    attention="block-causal",
    block=4,
    bos="<[begin▁of▁sentence]>",
    ends=("<[end▁of▁sentence]>",),
    most_tokens=8192,
)

FAMILIES = (
    *(DREAM, DREAM_ON, OPEN_DCODER, LLADA, TINY_A2D),
    *(TINY_A2D_BLOCKS, SDAR, FAST_DLLM, STABLE_DIFFCODER),
)

BLOCK_SIZE = {"sdar": "block_size", "fast-dllm-v2": "bd_size"}
"""The config key for the size of a family's blocks."""

NOT_IN_PROCESS = {
    "diffusion_gemma": "DiffusionGemma (26 billion parameters, a mixture of experts)",
    "llada2_moe": "LLaDA 2 (16 billion parameters and more, a mixture of experts)",
    "lladamoe": "LLaDA-MoE (a mixture of experts)",
    "sdar_moe": "SDAR-MoE (a mixture of experts)",
    "nemotron_labs_diffusion": "Nemotron-Labs-Diffusion",
}


def family_for(config: Mapping[str, Any], added_tokens: Collection[str], name: str = "") -> Family | None:
    """The family of a model, from its `config.json` and the special tokens of its tokenizer; None if it is in none.

    Only the `name` tells a checkpoint of Tiny-A2D that continues left to right (bd3lm) from one that infills (mdlm).
    """
    kind = str(config.get("model_type", ""))
    kind = "lladamoe" if kind == "llada" and config.get("num_experts") else kind
    if kind in NOT_IN_PROCESS:
        raise EngineError(
            f"{name or kind}: {NOT_IN_PROCESS[kind]} does not run in this process; choose a model that does: "
            "`mercury-ls model recommend`; or serve it on a GPU with SGLang or vLLM, and let it propose next edits: "
            "`mercury-ls model add http://127.0.0.1:30000 --prompt chat`"
        )
    family = _of_kind(kind, config, added_tokens, name.lower())
    if family is None:
        return None
    if missing := [token for token in family.tokens if token not in added_tokens]:
        raise EngineError(
            f"{name or kind}: the tokenizer of a {family.name} model has {', '.join(missing)}, which this one lacks; "
            "the folder holds the tokenizer of another model: download the model again"
        )
    block = config.get(BLOCK_SIZE.get(family.name, ""), family.block)
    return family if block == family.block else replace(family, name=f"{family.name}-{block}", block=block)


def family_named(name: str) -> Family | None:
    """The inverse of `Family.name`; a number at its end is the size of the blocks."""
    names = {family.name: family for family in FAMILIES}
    if name in names:
        return names[name]
    base, _, block = name.rpartition("-")
    if base in BLOCK_SIZE and block.isdecimal() and int(block):
        return replace(names[base], name=name, block=int(block))
    return None


def _of_kind(kind: str, config: Mapping[str, Any], added: Collection[str], name: str) -> Family | None:
    match kind:
        case "Dream":
            return DREAM_ON if DREAM_ON.expand in added else DREAM
        case "llada":
            return LLADA
        case "sdar":
            return SDAR
        case "Fast_dLLM_Qwen":
            return FAST_DLLM
        case "a2d-qwen2" | "a2d-qwen3" | "a2d-llama":
            return TINY_A2D_BLOCKS if "bd3lm" in name else TINY_A2D
        case "qwen2" if OPEN_DCODER.mask in added:
            return OPEN_DCODER
        case "llama" if "StableDiffcoderForCausalLM" in config.get("architectures", ()):
            return STABLE_DIFFCODER
    return None
