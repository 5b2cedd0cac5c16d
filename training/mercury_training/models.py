"""Models of ours with float weights: made, written and read for training and tests."""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

from mercury_engine.model.config import CONFIG_FILE, ModelConfig, ModelError, write_config
from mercury_engine.model.export import Weights, read
from mercury_engine.model.network import Model

WEIGHTS_FILE = "model.safetensors"
SMALL = ModelConfig(
    name="small",
    width=512,
    layers=12,
    heads=8,
    kv_heads=2,
    feed_forward=1408,
    vocabulary=16_384,
    context=2048,
)


def create(config: ModelConfig, seed: int) -> Model:
    """A model with random float32 weights; residual projections start smaller in deeper stacks."""
    generator = torch.Generator().manual_seed(seed)
    model = Model(config)
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(weight)
        if weight.dim() < 2:
            continue
        residual = name.endswith(("attention.output.weight", "feed_forward.down.weight"))
        deviation = 0.02 / (2 * config.layers) ** 0.5 if residual else 0.02
        nn.init.normal_(weight, std=deviation, generator=generator)
    return model


def save(model: Model, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_config(model.config, folder / CONFIG_FILE)
    weights = {name: weight.detach().contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, folder / WEIGHTS_FILE)


def load(folder: Path, dtype: torch.dtype | None = None) -> Model:
    """The model in a folder of float weights, which stay memory-mapped unless another `dtype` is given."""
    config, weights = read(folder)
    if weights["embedding.weight"].dtype != np.float32:
        raise ModelError(f"{folder}: the weights are quantised; name a folder with float weights")
    return with_weights(config, weights).to(dtype=dtype)


def with_weights(config: ModelConfig, weights: Weights) -> Model:
    model = Model(config)
    model.load_state_dict({name: torch.from_numpy(weight) for name, weight in weights.items()}, assign=True)
    return model.requires_grad_(False).eval()
