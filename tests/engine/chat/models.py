"""Tiny random diffusion models that chat: checkpoints of several families with the chat templates of real models."""

import json
from pathlib import Path

from mercury_engine.autoregressive.engine import open_autoregressive
from mercury_engine.families.engine import open_family
from mercury_engine.model.runtime import Resources
from mercury_engine.record import ModelRecord
from tests.engine.families import checkpoints

CHATML = (Path(__file__).parent / "templates/chatml.jinja").read_text("utf-8")

WITH_TOOLS = (Path(__file__).parent / "templates/tools.jinja").read_text("utf-8")

LLAMA = (Path(__file__).parent / "templates/llama.jinja").read_text("utf-8")

TEMPLATES = {"chatml": CHATML, "tools": WITH_TOOLS, "llama": LLAMA, "broken": "{% if %}"}
TOKENS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<|start_header_id|>", "<|end_header_id|>")
CONTEXT = 32768


def write(folder, family, template="tools", seed=0):
    name, config = checkpoints.write(folder, family, seed)
    long = {key: CONTEXT for key in ("max_position_embeddings", "max_sequence_length") if key in config}
    (folder / "config.json").write_text(json.dumps(config | long))
    special = [*checkpoints.CHECKPOINTS[family][3]]
    spec = checkpoints.tokenizer([*special, *(each for each in (*TOKENS, "<|eot_id|>") if each not in special)])
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": None, "eos_token": "<|endoftext|>"}))
    if template:
        (folder / "chat_template.jinja").write_text(TEMPLATES[template], encoding="utf-8")
    return name


def opened(folder, family, template="tools", seed=0):
    name = write(folder, family, template, seed)
    record = ModelRecord(name=name, kind="diffusion", prompt=family, context=CONTEXT)
    return open_family(folder, record, Resources(device="cpu"))


def opened_left_to_right(folder):
    name = write(folder, "open-dcoder", "tools")
    record = ModelRecord(name=name, kind="fim", prompt="qwen", context=CONTEXT)
    return open_autoregressive(folder, record, Resources(device="cpu"))
