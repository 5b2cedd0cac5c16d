"""Tiny random diffusion models that chat: checkpoints of several families with the chat templates of real models."""

import json

from mercury_engine.autoregressive.engine import open_autoregressive
from mercury_engine.families.engine import open_family
from mercury_engine.model.runtime import Resources
from mercury_engine.record import ModelRecord
from tests.engine.families import checkpoints

CHATML = """\
{%- for message in messages -%}
{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif -%}
"""

WITH_TOOLS = """\
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] + '\n\n' }}{%- endif %}
    {{- '# Tools\n\n<tools>' }}
    {%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\n</tools><|im_end|>\n' }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '<|im_start|>user\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant' }}
        {%- if message.content %}{{- '\n' + message.content }}{%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- set tool_call = tool_call.function %}
            {{- '\n<tool_call>\n{"name": "' + tool_call.name + '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}{{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
"""

LLAMA = """\
{{- bos_token }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}
"""

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
