"""Opens third-party weights, converted or as downloaded, behind `Runtime`."""

from pathlib import Path

import msgspec

from mercury_engine.model.checkpoint import read_checkpoint
from mercury_engine.model.config import ModelConfig
from mercury_engine.model.convert import WEIGHTS_FILE, read_converted
from mercury_engine.model.export import Weights
from mercury_engine.model.runtime import Resources, Runtime, on_gpu, usual_threads
from mercury_engine.record import ModelRecord

CONTEXT = 8192
"""How far a model reads unless its record says otherwise: more takes a CPU many seconds."""


def open_decoder(folder: Path, record: ModelRecord, resources: Resources) -> Runtime:
    """Open on a GPU if torch finds one, else with OpenVINO."""
    config, weights = read_decoder(folder, record.context or CONTEXT)
    config = msgspec.structs.replace(config, name=record.name)
    if on_gpu(resources):
        from mercury_engine.model.torch_runtime import of_weights

        return of_weights(config, weights, device="cuda", precision="bfloat16")
    from mercury_engine.model.openvino_runtime import OpenvinoRuntime, fastest_precision

    threads = resources.threads or usual_threads()
    return OpenvinoRuntime(config, weights, threads=threads, precision=fastest_precision(weights))


def read_decoder(folder: Path, context: int = CONTEXT) -> tuple[ModelConfig, Weights]:
    """The float weights of a downloaded checkpoint, else the quantised ones."""
    if (folder / WEIGHTS_FILE).exists() or not any(folder.glob("*.safetensors")):
        return read_converted(folder, context)
    checkpoint = read_checkpoint(folder, context)
    return checkpoint.config, {name: weight.rows() for name, weight in checkpoint.weights.items()}
