"""Qwen 2 in numpy, written from its report: what its logits should be, whatever our engine says."""

from pathlib import Path

import gguf
import numpy as np

__all__ = ["logits"]


def logits(path: Path, ids: list[int]) -> np.ndarray:
    """After each token, TV. One layer's weights at a time are in memory."""
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}

    def field(name: str) -> float:
        return reader.fields[f"qwen2.{name}"].contents()

    def weight(name: str) -> np.ndarray:
        return gguf.quants.dequantize(tensors[name].data, tensors[name].tensor_type)

    epsilon, heads = field("attention.layer_norm_rms_epsilon"), int(field("attention.head_count"))
    groups = heads // int(field("attention.head_count_kv"))

    def normed(x_TD: np.ndarray, name: str) -> np.ndarray:
        return x_TD / np.sqrt(np.mean(x_TD**2, axis=-1, keepdims=True) + epsilon) * weight(f"{name}.weight")

    x_TD = weight("token_embd.weight")[ids]
    width = x_TD.shape[1] // heads
    turns_TW = np.outer(np.arange(len(ids)), field("rope.freq_base") ** (-np.arange(0, width, 2) / width))
    cos_TW, sin_TW = np.cos(turns_TW), np.sin(turns_TW)
    future_TT = np.triu(np.full((len(ids), len(ids)), -np.inf), 1)

    def projected(x_TD: np.ndarray, name: str) -> np.ndarray:
        """By head, HTW."""
        y_TD = x_TD @ weight(f"{name}.weight").T + weight(f"{name}.bias")
        return y_TD.reshape(len(ids), -1, width).swapaxes(0, 1)

    def turned(x_HTW: np.ndarray) -> np.ndarray:
        first, second = np.split(x_HTW, 2, axis=-1)
        return np.concatenate([first * cos_TW - second * sin_TW, second * cos_TW + first * sin_TW], axis=-1)

    for layer in (f"blk.{number}" for number in range(int(field("block_count")))):
        read_TD = normed(x_TD, f"{layer}.attn_norm")
        query_HTW = turned(projected(read_TD, f"{layer}.attn_q"))
        key_HTW = turned(projected(read_TD, f"{layer}.attn_k")).repeat(groups, axis=0)
        value_HTW = projected(read_TD, f"{layer}.attn_v").repeat(groups, axis=0)
        scores_HTT = query_HTW @ key_HTW.swapaxes(1, 2) / np.sqrt(width) + future_TT
        shares_HTT = np.exp(scores_HTT - scores_HTT.max(axis=-1, keepdims=True))
        shares_HTT /= shares_HTT.sum(axis=-1, keepdims=True)
        attended_TD = (shares_HTT @ value_HTW).swapaxes(0, 1).reshape(len(ids), -1)
        x_TD = x_TD + attended_TD @ weight(f"{layer}.attn_output.weight").T
        read_TD = normed(x_TD, f"{layer}.ffn_norm")
        gate_TF = read_TD @ weight(f"{layer}.ffn_gate.weight").T
        up_TF = read_TD @ weight(f"{layer}.ffn_up.weight").T
        x_TD = x_TD + (gate_TF / (1 + np.exp(-gate_TF)) * up_TF) @ weight(f"{layer}.ffn_down.weight").T
    head = "output.weight" if "output.weight" in tensors else "token_embd.weight"
    return normed(x_TD, "output_norm") @ weight(head).T
