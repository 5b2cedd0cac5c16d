"""The generated parts of the documentation: the commands, from their parser, the settings, from their types, and what
`doctor` may find.

`python -m release.manual --write docs` renews what stands between `<!-- NAME -->` and `<!-- /NAME -->`.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mercury_ls.cli.parser import EXIT_CODES, parser
from mercury_ls.doctor import PROBLEMS, Problem
from mercury_ls.project.privacy import SECRET_FILES, SECRET_FOLDERS
from mercury_ls.settings import schema as tree
from mercury_ls.settings.schema import Setting, Settings


def _commands() -> str:
    top = parser()
    sections = map(_section, commands_of(top))
    return "\n".join([f"{top.description}\n", _options_table(top), _codes_table(), *sections])


def commands_of(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands, and in place of one that has verbs those."""
    for action in top._actions:  # argparse has no public way to list them
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from list(commands_of(command)) or [command]


def _codes_table() -> str:
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    return f"| exit code | meaning |\n|---|---|\n{rows}"


def _section(command: argparse.ArgumentParser) -> str:
    about = f"## `{command.prog}`\n\n{command.description}\n\n```\n{command.epilog}\n```\n"
    options = _options_table(command)
    return f"{about}\n{options}" if options else about


def _options_table(command: argparse.ArgumentParser) -> str:
    rows = "".join(_row(action) for action in command._actions if _is_own(command, action))
    return f"| argument | meaning |\n|---|---|\n{rows}" if rows else ""


def _is_own(command: argparse.ArgumentParser, action: argparse.Action) -> bool:
    """Whether an option needs a row: those that all commands share are listed once, at the top."""
    if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
        return False
    everywhere = {"config", "set", "log_file", "log_level"}
    return " " not in command.prog or action.dest not in everywhere


def _row(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    if action.choices:
        value = " or ".join(map(str, action.choices))
    name = f"{', '.join(action.option_strings)} {value}".strip()
    return f"| `{name}` | {action.help or ''} |\n"


def _schema() -> str:
    """The JSON schema of the user file, for editors that validate TOML and JSON."""
    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mercury-ls settings",
        **msgspec.json.schema(Settings),
    }
    return msgspec.json.format(msgspec.json.encode(described), indent=2).decode() + "\n"


def _settings() -> str:
    defaults = Settings()
    return "\n".join(
        f"## {name}\n\n{type(getattr(defaults, name)).__doc__}\n\n"
        "| Setting | Value | Default | Meaning |\n|---|---|---|---|\n"
        + "".join(map(_setting_row, (s for s in tree.settings().values() if s.path.startswith(f"{name}."))))
        for name in Settings.__struct_fields__
    )


def _setting_row(setting: Setting) -> str:
    default = msgspec.json.encode(setting.default).decode()
    own = " Not in a project file." if setting.personal else ""
    return f"| `{setting.path}` | {tree.expected(setting)} | `{default}` | {setting.description}{own} |\n"


def _secrets() -> str:
    patterns = "\n".join((*SECRET_FILES, *SECRET_FOLDERS))
    return f"```gitignore\n{patterns}\n```\n"


def _problems() -> str:
    head = "| part | what you notice | what it says | what to do |\n|---|---|---|---|\n"
    return head + "".join(map(_problem_row, PROBLEMS))


def _problem_row(problem: Problem) -> str:
    names = re.findall(r"{(\w+)}", "".join((problem.part, problem.found, problem.remedy)))
    finding = problem.finding(**{name: name.upper() for name in names})
    remedy = f"what it says; usually: {problem.usually}" if problem.usually else finding.remedy
    return f"| {finding.part} | {problem.symptom} | {finding.found} | {remedy} |\n"


PARTS = {
    "CLI.md": {"commands": _commands},
    "SETTINGS.md": {"settings": _settings, "secrets": _secrets},
    "TROUBLESHOOTING.md": {"problems": _problems},
}
"""What is generated of each page; the rest is written by hand."""


def pages(folder: Path) -> dict[str, str]:
    """The pages of a folder with their generated parts as they should be."""
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in PARTS}
    for name, parts in PARTS.items():
        for part, write in parts.items():
            before, mark, old = texts[name].partition(f"<!-- {part} -->\n")
            _, end, after = old.partition(f"<!-- /{part} -->")
            texts[name] = f"{before}{mark}{write()}{end}{after}"
    return texts | {"settings.schema.json": _schema()}


def main(arguments: Sequence[str]) -> int:
    """`--write docs` renews the pages of that folder."""
    if len(arguments) != 2 or arguments[0] != "--write":
        sys.stderr.write("usage: python -m release.manual --write FOLDER\n")
        return 2
    folder = Path(arguments[1])
    for name, text in pages(folder).items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
