"""Private keys that nobody uses, in the layouts in which source files hold keys."""

import json
import random
import string
from base64 import b64encode
from collections.abc import Callable, Sequence

from msgspec import Struct

SHORTEST_PIECE = 4
"""Shorter ones stand in any text."""


class RandomKey(Struct, frozen=True):
    """The lines of a key file; `body` are the numbers of those that are secret."""

    lines: tuple[str, ...]
    body: tuple[int, ...]


class LaidOut(Struct, frozen=True):
    """A key as it stands in a source file, and the pieces of it that must not leave."""

    text: str
    secrets: tuple[str, ...]
    layout: str

    @property
    def has_both_marks(self) -> bool:
        return self.layout.startswith("whole") and "PRIVATE KEY" in self.text


def random_key(rng: random.Random) -> RandomKey:
    return rng.choice((_pem, _pem, _pem, _pem, _openssh, _openssh, _pgp, _age, _putty))(rng)


def laid_out(rng: random.Random, key: RandomKey) -> LaidOut:
    """The key, or what a cut has left of it, in some layout."""
    name, layout = rng.choice([*LAYOUTS.items()])
    cut, lines, body = _cut(rng, key)
    return LaidOut(layout(rng, lines), tuple(piece for piece in body if len(piece) >= SHORTEST_PIECE), f"{cut} {name}")


def leaks(sent: str, secrets: Sequence[str], length: int = 10) -> list[str]:
    """The pieces of a key that are in what is sent: the short ones whole, and of the others any part."""
    leaked = []
    for secret in secrets:
        size = min(length, len(secret))
        parts = {secret[at : at + size] for at in range(len(secret) - size + 1)}
        leaked += [part for part in sorted(parts) if part in sent][:1]
    return leaked


def _cut(rng: random.Random, key: RandomKey) -> tuple[str, list[str], list[str]]:
    """What there is of it: all, or not its beginning or its end, since it is being typed or was removed in part."""
    first, last = 0, len(key.lines)
    kind = "whole" if len(key.lines) == 1 else rng.choice(("whole", "whole", "whole", "no end", "no start", "typed"))
    if kind == "no end":
        last -= 1
    elif kind == "no start":
        first = key.body[0]
    elif kind == "typed":
        last = rng.choice(key.body) + 1
    lines = [*key.lines[first:last]]
    body = [line for number, line in enumerate(key.lines) if number in key.body and first <= number < last]
    if len(key.lines) == 1:
        body = [key.lines[0].rpartition("-1")[2]]
    return kind, lines, body


def _base64(data: bytes, width: int) -> list[str]:
    text = b64encode(data).decode()
    return [text[at : at + width] for at in range(0, len(text), width)]


def _marked(label: str, headers: Sequence[str], body: Sequence[str], checksum: Sequence[str] = ()) -> RandomKey:
    lines = (f"-----BEGIN {label}-----", *headers, *body, *checksum, f"-----END {label}-----")
    first = 1 + len(headers)
    return RandomKey(lines, tuple(range(first, first + len(body) + len(checksum))))


def _pem(rng: random.Random) -> RandomKey:
    label = rng.choice(("RSA ", "EC ", "DSA ", "ENCRYPTED ", "", "")) + "PRIVATE KEY"
    size = rng.choice((48, 121, 138, 318, 609, 1218, 2374))
    der = bytes.fromhex(
        rng.choice(("308204a20201000282010100", "308204bd020100300d06092a864886f70d0101010500048204a7"))
    )
    headers = ()
    if label.startswith(("RSA", "EC")) and rng.random() < 0.2:
        headers = "Proc-Type: 4,ENCRYPTED", f"DEK-Info: AES-128-CBC,{rng.randbytes(16).hex().upper()}", ""
    width = rng.choice((64, 64, 64, 76, 48, 40, 32))
    return _marked(label, headers, _base64(der + rng.randbytes(size), width))


def _openssh(rng: random.Random) -> RandomKey:
    head = b"openssh-key-v1\0\0\0\0\x04none\0\0\0\x04none\0\0\0\0\0\0\0\x01\0\0\0\x33\0\0\0\x0bssh-ed25519\0\0\0 "
    return _marked("OPENSSH PRIVATE KEY", (), _base64(head + rng.randbytes(rng.choice((200, 320, 1700))), 70))


def _pgp(rng: random.Random) -> RandomKey:
    headers = rng.choice((("",), ("Version: GnuPG v2", ""), ("Comment: https://example.org", "Version: GnuPG v2", "")))
    checksum = "=" + b64encode(rng.randbytes(3)).decode()
    return _marked("PGP PRIVATE KEY BLOCK", headers, _base64(rng.randbytes(rng.choice((300, 1400))), 64), (checksum,))


def _age(rng: random.Random) -> RandomKey:
    characters = "".join(rng.choices("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", k=58))
    return RandomKey((f"AGE-SECRET-KEY-1{characters}",), (0,))


def _putty(rng: random.Random) -> RandomKey:
    public, private = (_base64(rng.randbytes(size), 64) for size in (279, rng.choice((106, 600))))
    head = ("PuTTY-User-Key-File-3: ssh-rsa", "Encryption: none", "Comment: me@host", f"Public-Lines: {len(public)}")
    lines = (*head, *public, f"Private-Lines: {len(private)}", *private, f"Private-MAC: {rng.randbytes(32).hex()}")
    first = len(head) + len(public) + 1
    return RandomKey(lines, tuple(range(first, first + len(private))))


Layout = Callable[[random.Random, Sequence[str]], str]


def _each(form: str) -> Layout:
    """Every line in the same form."""
    return lambda rng, lines: "\n".join(form.replace("{}", line) for line in lines) + "\n"


def _within(head: str, form: str, tail: str) -> Layout:
    return lambda rng, lines: head + _each(form)(rng, lines) + tail


def _one_line(head: str, between: str, tail: str) -> Layout:
    return lambda rng, lines: head + between.join(lines) + tail


def _json(rng: random.Random, lines: Sequence[str]) -> str:
    text = json.dumps({"type": "account", "private_key": "\n".join(lines) + "\n", "email": "me@example.org"}, indent=2)
    return json.dumps(text) + "\n" if rng.random() < 0.3 else text + "\n"


def _growing(rng: random.Random, lines: Sequence[str]) -> str:
    first, *others = lines
    rest = "".join(f'key += "{line}\\n"\n' for line in others)
    return f'key = "{first}\\n"\n{rest}'


def _added(rng: random.Random, lines: Sequence[str]) -> str:
    pieces = " +\n".join(f'    "{line}\\n"' for line in lines)
    return f"const key =\n{pieces};\n"


def _short_pieces(rng: random.Random, lines: Sequence[str]) -> str:
    """The marks on a line, and the rest in pieces, as for a narrow margin."""
    width = rng.choice((16, 20, 24, 33))
    widths = [len(line) if "-" in line or ":" in line else width for line in lines]
    cut = [
        line[at : at + size] for line, size in zip(lines, widths, strict=True) for at in range(0, len(line), size or 1)
    ]
    return "KEY = (\n" + "".join(f'    "{piece}"\n' for piece in cut) + ")\n"


LAYOUTS: dict[str, Layout] = {
    "plain": _each("{}"),
    "indented": _within("key: |\n", "  {}", ""),
    "deeply indented": _within("data:\n", "\t\t\t{}", ""),
    "hash": _each("# {}"),
    "slashes": _each("// {}"),
    "block comment": _within("/**\n", " * {}", " */\n"),
    "dashes": _each("-- {}"),
    "quoted mail": _each("> {}"),
    "diff": _each("+{}"),
    "docstring": _within('KEY = """\\\n', "{}", '"""\n'),
    "indented docstring": _within('    key = """', "    {}", '    """\n'),
    "template": _within("const KEY = `", "{}", "`;\n"),
    "tuple": _within("KEY = (\n", '    "{}\\n"', ")\n"),
    "bytes": _within("KEY = (\n", '    b"{}\\n"', ")\n"),
    "list": _within("KEY = [\n", "    '{}',", "]\n"),
    "added": _added,
    "growing": _growing,
    "appended": _each('lines.append("{}")'),
    "echoed": _each('echo "{}" >> key.pem'),
    "C string": _within("static const char *key =\n", '    "{}\\r\\n"', "    ;\n"),
    "json": _json,
    "json list": _within('{"key": [\n', '  "{}",', "]}\n"),
    "one string": _one_line('key = "', "\\n", '\\n"\n'),
    "one string of carriage returns": _one_line("KEY='", "\\r\\n", "'\n"),
    "escaped twice": _one_line('key = "', "\\\\n", '\\\\n"\n'),
    "one line": _one_line("", " ", "\n"),
    "URL": _one_line("key=", "%0A", "&x=1\n"),
    "HTML": _one_line("<pre>", "&#10;", "</pre>\n"),
    "XML": _within("<key>", "{}", "</key>\n"),
    "double spaced": _each("{}\n"),
    "trailing blanks": _each("{}  "),
    "numbered": lambda rng, lines: "".join(f"{number:3}  {line}\n" for number, line in enumerate(lines, 1)),
    "short pieces": _short_pieces,
    "shell": _within("cat > key <<EOF\n", "{}", "EOF\n"),
    "batch": _each("REM {}"),
    "continued": _each("{}\\"),
}


def random_names(rng: random.Random) -> list[str]:
    return ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))) for _ in range(6)]


def random_code(rng: random.Random, lines: int, names: Sequence[str]) -> str:
    kinds = ("def {}({}):\n    return {}\n", "{} = {}.{}()\n", "import {}  # {} {}\n", "if {} > {}:\n    {}()\n", "\n")
    return "".join(rng.choice(kinds).format(*rng.choices(names, k=3)) for _ in range(lines))
