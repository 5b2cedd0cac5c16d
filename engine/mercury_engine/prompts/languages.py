"""The languages that models of ours know, and the token of each."""

LANGUAGES = (
    *("python", "javascript", "typescript", "tsx", "rust", "go", "c", "cpp", "java", "csharp", "ruby", "php"),
    *("bash", "lua", "json", "html", "css", "markdown", "text", "yaml", "toml", "xml", "sql", "kotlin", "swift"),
)

LANGUAGE_ALIASES = {
    "javascriptreact": "javascript",
    "jsonc": "json",
    "sh": "bash",
    "shellscript": "bash",
    "typescriptreact": "tsx",
    "zsh": "bash",
}
"""Alternative names that editors use; an unknown language counts as `text`."""


def language_sign(name: str) -> str:
    name = LANGUAGE_ALIASES.get(name, name)
    return f"<lang:{name if name in LANGUAGES else 'text'}>"
