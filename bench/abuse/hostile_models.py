"""Model folders and chat templates that nobody should publish, and somebody will."""

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from bench.abuse import hostile
from bench.harness.tiny import SPECIALS, checkpoint

CHATML = (
    "{%- for message in messages -%}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}"
)
TEMPLATES = (
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ ('x' * 9999999999) | length }}",
    "{% set all = namespace(x='x') %}{% for a in range(99) %}{% set all.x = all.x + all.x %}{% endfor %}",
    "{{ 'x' * 9999999 }}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ range(99999) | list | tojson }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ cycler.__init__.__globals__.os.system('touch ../../escaped') }}",
    "{{ raise_exception('no' * 999999) }}",
    "{{ raise_exception('\\x1b[31m\\u202e') }}",
    "{{ raise_exception(messages) }}",
    "{{ lipsum(n=9999) }}",
    "{{ '{:>9999999999}'.format(1) }}",
    "{{ '%9999999999d' % 1 }}",
    "{{ '{0.__class__}'.format(messages) }}",
    "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}",
    "{% set all = messages.append(messages) %}",
    "{{ strftime_now('%c' * 999999) }}",
    "{{ '\\ud800' }}",
    "{{ '<|im_end|>' * 99999 }}",
    "{% for a in range(99999) %}{{ loop.index }}{{ '\\x00' }}{% endfor %}",
    "{{ messages[0].content | replace('', 'x' * 99999) | replace('', 'y' * 999) }}",
    "{{ self._TemplateReference__context }}",
    "{{ messages | map(attribute='content') | join('') | wordwrap(1) | urlize }}",
)
"""Of one conversation; the others are rendered as they should be."""
WHOLE_TEMPLATES = (
    "{% if %}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{% if true %}" * 500 + "{% endif %}" * 500,
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.environ }}",
    "x" * (8 << 20),
    "{{ 'x' }}" * 200_000,
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "\0\ud800\x1b[31m",
    "",
)


def with_attacks(attacks: list[str]) -> str:
    """A template that is hostile to the conversations that begin with `attack 0` and so on."""
    parts = (f"{{% if messages[0].content == 'attack {n}' %}}{text}{{% endif %}}" for n, text in enumerate(attacks))
    return "".join(parts) + CHATML


def chatting(folder: Path, template: str = CHATML) -> Path:
    """A tiny model of random weights that completes and chats."""
    checkpoint(folder, (*SPECIALS, "<|im_start|>"), max_position_embeddings=4096)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}), encoding="utf-8")
    return folder


def damage(rng: random.Random, folder: Path) -> str:
    """Makes something of a sound folder hostile; returns what."""
    kind = rng.choice(DAMAGES)
    return f"{kind.__name__}: {kind(rng, folder)}"


def _described(rng: random.Random, folder: Path) -> str:
    """A value of a file of JSON is missing, or another."""
    name = rng.choice(("config.json", "config.json", "tokenizer.json", "tokenizer.json", "tokenizer_config.json"))
    path = folder / name
    value = hostile.damaged(rng, json.loads(path.read_bytes()))
    path.write_text(json.dumps(value), encoding="utf-8")
    return name


def _rubbish(rng: random.Random, folder: Path) -> str:
    """Instead of a file of JSON."""
    deep = b"[" * 100_000 + b"]" * 100_000
    bodies = (b"", b"{", b"[]", b"5", b"null", b"\xff\xfe", deep, b'{"a":' + deep + b"}", b"\0" * 99, b"9" * 50_000)
    path = folder / rng.choice(("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"))
    path.write_bytes(rng.choice(bodies))
    return path.name


def _odd(rng: random.Random, folder: Path) -> str:
    """A file is something else than a file, or has no end."""
    path = folder / rng.choice(("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"))
    path.unlink()
    kind = rng.choice(("pipe", "folder", "loop", "zeros", "secret", "sparse", "gone"))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 42)
    elif kind != "gone":
        path.symlink_to({"loop": path.name, "zeros": "/dev/zero", "secret": "/etc/passwd"}[kind])
    return f"{path.name} is a {kind}"


def _header(rng: random.Random, folder: Path) -> str:
    """The header of the weights says what is not so."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    if rng.random() < 0.3:
        length = rng.choice((0, 1, length - 1, length + 1, 10**8, 1 << 40, (1 << 63) - 1, (1 << 64) - 1))
        path.write_bytes(struct.pack("<Q", length) + data[8:])
        return f"its length is {length}"
    tensors = json.loads(data[8 : 8 + length])
    name = rng.choice([*tensors])
    field = rng.choice(("dtype", "shape", "data_offsets"))
    values = {
        "dtype": ("F64", "BOOL", "F8_E4M3", "", 5, None, "x" * 10_000),
        "shape": ([], [-1], [1 << 62, 1 << 62], [0, 1 << 62], [0] * 10_000, [1.5], "x", None, [1 << 40], {}),
        "data_offsets": ([0, 1 << 62], [-1, 5], [5, 0], [0], [], None, [0, 0], [1 << 63, 1 << 63], "x"),
    }
    if not isinstance(tensors[name], dict):
        tensors[name] = hostile.value(rng)
    else:
        tensors[name][field] = rng.choice(values[field])
    if rng.random() < 0.1:
        count = min(100_000, 10_000_000 // len(json.dumps(tensors[name])))  # a longer header would hold up the probes
        tensors |= {f"model.{number}": tensors[name] for number in range(count)}
    made = json.dumps(tensors).encode()
    path.write_bytes(struct.pack("<Q", len(made)) + made + data[8 + length :])
    return f"{name}: {field} is {tensors[name]!r:.80}"


def _cut(rng: random.Random, folder: Path) -> str:
    """A file ends early, or some of its bytes are others."""
    path = folder / rng.choice(("config.json", "tokenizer.json", "model.safetensors"))
    data = bytearray(path.read_bytes())
    if rng.random() < 0.5:
        del data[rng.randrange(len(data)) :]
    for _ in range(rng.randrange(1, 20) if data else 0):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    return path.name


def _slow_tokenizer(rng: random.Random, folder: Path) -> str:
    """It has a program that takes long."""
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_bytes())
    replace = {"type": "Replace", "pattern": {"Regex": rng.choice(("(a+)+$", "(.*)*x", "(?:a|a)*b"))}, "content": "aa"}
    longer = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * rng.choice((99, 9999))}
    normalizers = rng.choice(
        (
            [replace],
            [longer] * rng.choice((3, 9)),
            [{"type": "Prepend", "prepend": "a" * 100_000}],
            [{"type": "NFKD"}] * 100_000,
        )
    )
    tokenizer["normalizer"] = {"type": "Sequence", "normalizers": normalizers}
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return f"{len(normalizers)} of {normalizers[0]['type']}"


def _huge_numbers(rng: random.Random, folder: Path) -> str:
    """The sizes of the model are not those of its weights."""
    path = folder / "config.json"
    config = json.loads(path.read_bytes())
    name = rng.choice([name for name, value in config.items() if isinstance(value, int | float)])
    config[name] = rng.choice((0, -1, 1, 1 << 31, 1 << 62, 1e308, float("nan"), 0.5, 10**30, True))
    path.write_text(json.dumps(config), encoding="utf-8")
    return f"{name} is {config[name]}"


def _not_numbers(rng: random.Random, folder: Path) -> str:
    """Some weights are NaN, or infinite."""
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    first = 8 + struct.unpack("<Q", data[:8])[0]
    word, count = rng.choice((b"\xff\xff\xff\xff", b"\x00\x00\x80\x7f")), rng.choice((1, 1000))
    at = first + rng.randrange((len(data) - first) // 4 - count) * 4
    data[at : at + 4 * count] = word * count
    path.write_bytes(data)
    return f"{count} words of {word.hex()}"


def gguf(rng: random.Random, folder: Path) -> str:
    """Only a file of this format, with counts, lengths and kinds that are not so."""
    for path in folder.iterdir():
        path.unlink()
    count, fields = (rng.choice((0, 1, 9, 1 << 20, 1 << 40, (1 << 64) - 1)) for _ in range(2))
    name = rng.choice((b"general.architecture", b"tokenizer.ggml.tokens", b"x"))
    kind, inner = rng.randrange(15), rng.choice((4, 8, 9))
    value = struct.pack("<IQ", inner, rng.choice((1, 1 << 30, 1 << 60))) if kind == 9 else struct.pack("<Q", 1 << 50)
    data = b"GGUF" + struct.pack("<IQQ", rng.choice((2, 3, 99)), count, fields)
    data += struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value
    data += struct.pack("<IQ", 9, 1 << 30) * rng.choice((0, 2000)) + rng.randbytes(rng.choice((0, 4096)))
    (folder / "model.gguf").write_bytes(data)
    return f"{count} tensors, {fields} fields, kind {kind}"


def _index(rng: random.Random, folder: Path) -> str:
    """The weights are said to lie elsewhere."""
    there = rng.choice(("../others/model.json", "/etc/passwd", "model.safetensors", "a\0b", "x" * 5000, ""))
    shutil.move(folder / "model.safetensors", folder / "model-00001-of-00001.safetensors")
    found = {"metadata": {}, "weight_map": {"model.norm.weight": there}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(found), encoding="utf-8")
    return there[:40]


def _template(rng: random.Random, folder: Path) -> str:
    chosen = rng.choice((*TEMPLATES, *WHOLE_TEMPLATES))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": chosen}), encoding="utf-8")
    return chosen[:60]


DAMAGES: tuple[Callable[[random.Random, Path], str], ...] = (
    _described, _described, _rubbish, _odd, _header, _header, _cut, _slow_tokenizer, _huge_numbers, _not_numbers, gguf,
    _index, _template,
)  # fmt: skip
