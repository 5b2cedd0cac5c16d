"""Values, texts and files that nobody should send, and somebody will."""

import json
import random
from typing import Any

from bench.abuse.steps import Kind, Touch

CANARY = "canary_of_the_deep_mine"
SECRET = (".env", "server.pem", "deep/id_rsa", "credentials.json", ".aws/config")
"""Hidden by every setting that a stranger's project could have."""
HIDDEN = (*SECRET, "private_git.py", "private_mercury.py", "secrets/inner.py")

BREAKS = ("\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
ODD = ("\0", "\ud83d", "\ude00", "\ufffd", "\ufeff", "\u202e", "\u200d", "\x1b[31m", "\t", '"', "\\", "\uffff")
WIDE = ("é", "e\u0301", "中文", "😀", "👩\u200d💻", "\U0010ffff", "ﷺ")
CODE = (
    "def area(width, height):\n    return width * height\n",
    "total = compute(1)\nother = 2\ntotal = ",
    "class Shape:\n    def __init__(self, sides):\n        self.sides = sides\n",
    "for item in items:\n    print(item)\n",
    "import os\nfrom pathlib import Path\n",
    "x", "name", "(", ")", "{", "}", "[", "]", "'", '"""', "#", "    ", " = ", ".", ",", ":", "0", "area",
)  # fmt: skip


def text(rng: random.Random, pieces: int = 6) -> str:
    pools = rng.choices((CODE, BREAKS, ODD, WIDE), (60, 25, 6, 9), k=rng.randint(0, pieces))
    return "".join(rng.choice(pool) for pool in pools)


def _deep(levels: int, around: str = "[]") -> str:
    """JSON nested so deep, as text: no library of ours would write it."""
    if around == "[]":
        return "[" * levels + "]" * levels
    return '{"a":' * levels + "1" + "}" * levels


def value(rng: random.Random) -> Any:
    """What stands where something else belongs."""
    kinds = (
        None, True, False, 0, -1, 1, 3.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**32, -(2**31), 2**53 + 1,
        2**64, -(10**30), "", "1", "null", "\0", "\ud800", "file:///", "é" * 99, [], {}, [[]], [None], {"": None},
        {"line": 0}, ["x", 1], "x" * 5000, "../../../etc/passwd", "file:///%00", "http://[::1", "file://host/share/a.py",
    )  # fmt: skip
    return rng.choice(kinds)


def damaged(rng: random.Random, message: dict[str, Any]) -> dict[str, Any]:
    """A copy in which one to three things are missing, of another kind, or too many."""
    copy = json.loads(json.dumps(message))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        owner, key = rng.choice(list(_places(copy)) or [(copy, "params")])
        action = rng.randrange(4)
        if action == 0 and isinstance(owner, dict):
            owner.pop(key, None)
        elif action == 1 and isinstance(owner, dict):
            owner[rng.choice(("extra", "", "id", "\0", "__class__"))] = value(rng)
        else:
            owner[key] = value(rng)
    if copy.get("method") in ("exit", "shutdown", "initialize"):
        copy["method"] = "no/exit"
    return copy


def _places(value: Any) -> Any:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        keys = found.keys() if isinstance(found, dict) else range(len(found))
        for key in keys:
            yield found, key
            if isinstance(found[key], dict | list):
                waiting.append(found[key])


def rubbish(rng: random.Random) -> bytes:
    """A body that is no message, or hardly one."""
    kinds = (
        b"", b"{", b"[]", b"null", b"1", b'"x"', b"not json", b"\0" * 40, b"\xff\xfe{}", b"{}", b"[{}]",
        b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":7}', b'{"jsonrpc":"2.0","id":null,"method":"mercury/status"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"mercury/status","params":{}}',
        b'{"jsonrpc":"2.0","id":[],"method":"mercury/status","params":{}}',
        b'{"jsonrpc":"2.0","id":true,"method":"mercury/status","params":{}}',
        b'{"jsonrpc":"1.0","id":4,"method":"mercury/status"}', b'{"id":5,"method":"mercury/status"}',
        b'{"jsonrpc":"2.0","id":6,"method":5}', b'{"jsonrpc":"2.0","method":"mercury/status","params":[1,2]}',
        b'{"jsonrpc":"2.0","id":8,"result":{}}', b'{"jsonrpc":"2.0","id":"9","error":{"code":"x"}}',
        b'{"jsonrpc":"2.0","id":8,"error":null}', b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"mercury/status","params":{}}',
        b'{"jsonrpc":"2.0","id":' + b"7" * 5000 + b',"method":"mercury/status","params":{}}',
        b'{"jsonrpc":"2.0","id":' + b"7" * 90 + b',"method":"mercury/status","params":{}}',
        b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{"a":1}}}',
        b'{"jsonrpc":"2.0","method":"$/setTrace","params":{"value":"loud"}}',
        b'{"jsonrpc":"2.0","method":"$/unknown","params":{}}', b'{"jsonrpc":"2.0","id":3,"method":"$/unknown"}',
        b'[{"jsonrpc":"2.0","id":6,"method":"shutdown"}]',
    )  # fmt: skip
    if rng.random() < 0.25:
        return _nested(rng)
    return rng.choice(kinds)


def _nested(rng: random.Random) -> bytes:
    inner = _deep(rng.choice((50, 300, 700, 900, 960, 985, 995, 2000, 100_000)), rng.choice(("[]", "{}")))
    shape = rng.choice(
        (
            "{}",
            '{{"jsonrpc":"2.0","id":11,"method":"mercury/status","params":{{"deep":{}}}}}',
            '{{"jsonrpc":"2.0","id":{},"method":"mercury/status","params":{{}}}}',
            '{{"jsonrpc":"2.0","id":12,"method":"workspace/executeCommand","params":{{"command":"x","arguments":{}}}}}',
            '{{"jsonrpc":"2.0","method":"workspace/didChangeConfiguration","params":{{"settings":{}}}}}',
            '{{"jsonrpc":"2.0","id":13,"method":"textDocument/inlineCompletion","params":{}}}',
        )
    )
    return shape.format(inner).encode()


def headers(rng: random.Random, length: int) -> bytes:
    """A header block that is odd and has to be understood."""
    name = rng.choice(("content-length", "CONTENT-LENGTH", "Content-length", "Content-Length"))
    number = rng.choice((f"{length}", f"  {length}\t", f"{length:09d}"))
    other = rng.choice(("", "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n", "X: \xff\r\n", "a:b:c\r\n"))
    return f"{other}{name}:{number}\r\n\r\n".encode("latin-1")


def bad_headers(rng: random.Random) -> bytes:
    """A block without a body: whoever refuses it understands what follows."""
    kinds = (
        b"Content-Length: nine\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"Content-Length: 1.5\r\n\r\n",
        b"Content-Length:\r\n\r\n", b"Rubbish\r\n\r\n", b"\r\n\r\n", b": 5\r\n\r\n", b"Content-Type: 7\r\n\r\n",
        b"Content-Length: 0x10\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\0\r\n\r\n", b"a" * 7000 + b"\r\n\r\n",
    )  # fmt: skip
    return rng.choice(kinds)


def hidden_text(name: str, *, strict: bool) -> str:
    """With the canary, unless rules that come and go may show this file."""
    word = CANARY if strict or name.endswith(SECRET) else "seen"
    return f"def {word}(mine):\n    return {word}(mine)\n"


def project(*, strict: bool) -> dict[str, str]:
    """A small project, with what must never be read among it."""
    return {
        "shapes.py": "def area(width, height):\n    return width * height\n\n\nclass Shape:\n    sides = 4\n",
        "deep/loader.py": "import shapes\n\n\ndef load(path):\n    return shapes.area(1, 2)\n",
        ".gitignore": "private_git.py\nsecrets/\n",
        ".mercuryignore": "private_mercury.py\n",
        ".git/HEAD": "ref: refs/heads/main\n",
        **{name: hidden_text(name, strict=strict) for name in HIDDEN},
    }


TOML = (
    b"", b"suggest", b"[suggest]\ndelay_ms = 0\n", b"[suggest]\ndelay_ms = -1\n", b'[suggest]\ndelay_ms = "x"\n',
    b"\xff\xfe", b"\0" * 99, b"a = " + b"[" * 3000 + b"]" * 3000, b"[" + b".".join([b"a"] * 5000) + b"]\n",
    b".".join([b"a"] * 900) + b" = 1\n", b"a = " + b"{a=" * 900 + b"1" + b"}" * 900, b"a = " + b"9" * 5000,
    b"[suggest]\ndelay_ms = " + b"9" * 5000, b"[suggest]\nminimum_probability = nan\n",
    b"[engine]\ndeadline_ms = 1e400\n",
    b"[privacy]\nsecret_patterns = ['!.env', '!*.pem', '!id_rsa']\nrespect_ignore_files = false\n",
    b"[engine]\naddress = 'https://evil.example'\n[log]\nfile = '/dev/full'\n", b"suggest = 5\n", b"[[suggest]]\n",
    b"[suggest]\nlanguages = {python = 'x'}\n", b"a = 1\na = 2\n", b"#" * (1 << 19), b"x = 2000-13-45\n",
    b"\xef\xbb\xbf[suggest]\nin_comments = true\n", b"[suggest]\r\nin_strings = true\r\n", b'"\\ud800" = 1\n',
)  # fmt: skip
IGNORE = (
    b"", b"\xff\xfe\0", b"!*\n", b"!.env\n!server.pem\n", b"[\n", b"[a-\n", b"\\\n", b"***/**/a\n", b"a" * 9000,
    b"\n".join(b"pattern%d/**/*.x%d" % (n, n) for n in range(400)), b"(((((((((\n", b"*" * 300 + b"b\n", b"\0\n",
    b"[[:alpha:]]\n", b"/\n", b"//\n", b"!\n", b"# nothing\n", b"{a,b}\n", b"\xef\xbb\xbf*.tmp\n", b"[z-a]\n",
    b"#" * (1 << 19),
)  # fmt: skip
GIT = (
    b"gitdir: \0", b"gitdir: ", b"gitdir: ../../../../..", b"gitdir: .git", b"\xff", b"", b"gitdir: " + b"a/" * 5000,
    b"gitdir: /proc/self/fd/0", b"gitdir: /dev/zero",
)  # fmt: skip
HEADS = (b"", b"ref: \0", b"ref: ../../../etc/passwd", b"\xff" * 99, b"ref: refs/heads/" + b"x" * 9000, b"0" * 40)


def file(rng: random.Random, *, strict: bool) -> Touch:
    """A file of the project, malformed. A strict session leaves alone what hides files."""
    path, contents = rng.choice(
        [(".mercury.toml", TOML)]
        if strict
        else [(".mercury.toml", TOML), (".gitignore", IGNORE), (".mercuryignore", IGNORE), (".git", GIT), *GIT_FILES]
    )
    kind: Kind = rng.choices(("file", "folder", "pipe", "link", "loop", "gone"), (70, 5, 5, 8, 4, 8))[0]
    return Touch(path, kind, rng.choice(contents) if kind == "file" else b"")


GIT_FILES = ((".git/HEAD", HEADS), (".git/info/exclude", IGNORE), ("deep/.gitignore", IGNORE))
