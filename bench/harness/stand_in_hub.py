"""A hub on a loopback port, which answers as the real one does where `huggingface_hub` asks it."""

import hashlib
import json
import re
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHA = "0123456789abcdef0123456789abcdef01234567"


class StandIn:
    """`files` of the repository `id` by name. `cut`: after so many bytes of a file a connection breaks. It `stays`, or
    is gone then. `elsewhere`: the address of the server that has the weights. `wrong`: what to send instead of a file's
    content. `says`: what it says of the repository, right or not. `sends`: headers and pieces of a body whose length
    nobody says, instead of a file or (as "") of the description."""

    def __init__(self, files, id="org/tiny"):
        self.id = id
        self.files = files
        self.gated = False
        self.admitted = True
        self.renamed = {}
        self.cut = {}
        self.wrong = {}
        self.says = {}
        self.sends = {}
        self.stays = False
        self.is_gone = False
        self.elsewhere = ""
        self.asked = []
        self.tokens = set()
        self.address = ""

    def info(self):
        return {
            "id": self.id,
            "sha": SHA,
            "gated": "auto" if self.gated else False,
            "tags": ["license:apache-2.0"],
            "cardData": {"license": "apache-2.0"},
            "safetensors": {"parameters": {"BF16": 1234}, "total": 1234},
            "siblings": [self.sibling(name, content) for name, content in self.files.items()],
            **self.says,
        }

    def sibling(self, name, content):
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        found = {"rfilename": name, "size": len(content), "blobId": blob}
        if name.endswith((".safetensors", ".gguf")):
            digest = hashlib.sha256(content).hexdigest()
            found["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
        return found

    def answer(self, path, start, stop=None):
        """Status, headers and body; how much of it is sent."""
        if found := re.fullmatch(r"/api/models/([\w-]+/[\w.-]+)(?:/revision/([^/?]+))?(\?.*)?", path):
            id, revision, query = found[1], found[2], found[3] or ""
            if id in self.renamed:
                return 307, {"Location": f"/api/models/{self.renamed[id]}{query}"}, b""
            if id != self.id:
                return 401, {"X-Error-Code": "RepoNotFound"}, b"{}"
            if revision not in (None, "main", SHA):
                return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
            return 200, {"Content-Type": "application/json"}, json.dumps(self.info()).encode()
        if found := re.fullmatch(rf"/{self.id}/resolve/{SHA}/(.+)", path):
            if not self.admitted:
                return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
            if self.elsewhere and found[1].endswith(".safetensors"):
                return 302, {"Location": f"{self.elsewhere}{path}"}, b""
            content = self.wrong.get(found[1], self.files[found[1]])
            if start >= len(content):
                return 416, {}, b""
            return (206 if start or stop else 200), {}, content[start:stop]
        return 404, {"X-Error-Code": "EntryNotFound"}, b"{}"


@contextmanager
def serving(stand_in):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            ranged = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            start = int(ranged[1]) if ranged else 0
            stop = int(ranged[2]) + 1 if ranged and ranged[2] else None
            stand_in.tokens.add(self.headers.get("Authorization", ""))
            stand_in.asked.append((self.path.partition("?")[0], start))
            if stand_in.is_gone:
                self.close_connection = True
                return
            if sent := stand_in.sends.get(self.path.rpartition("/")[2] if "/resolve/" in self.path else ""):
                self.send_endlessly(*sent)
                return
            status, headers, body = stand_in.answer(self.path, start, stop)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            name = self.path.rpartition("/")[2]
            if name in stand_in.cut:
                body = body[: stand_in.cut.pop(name)]
                stand_in.is_gone = not stand_in.stays
                self.close_connection = True
            with suppress(ConnectionError):
                self.wfile.write(body)

        def send_endlessly(self, headers, pieces):
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
            with suppress(ConnectionError):
                for piece in pieces:
                    self.wfile.write(piece)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    stand_in.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
