"""Documents drawn as text, with the cursor as `$0`."""

from mercury_ls.code.documents import Document, Snapshot

SUFFIX = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "rust": "rs",
    "go": "go",
    "c": "c",
    "cpp": "cpp",
    "java": "java",
    "kotlin": "kt",
    "lua": "lua",
    "html": "html",
}


def marked(drawn: str, language: str = "python") -> tuple[Snapshot, int]:
    offset = drawn.index("$0")
    text = drawn.replace("$0", "", 1)
    path = f"/project/file.{SUFFIX[language]}"
    return Document(f"file://{path}", path, language, 1, text).snapshot(), offset
