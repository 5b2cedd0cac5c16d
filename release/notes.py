"""What a release's page says: its section of CHANGELOG.md."""

import re


def notes(changelog: str, version: str) -> str:
    """The text below the version's heading, up to the next one."""
    section = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md says nothing below `## {version}`: rename its section `Unreleased`")
    return section[1].strip() + "\n"
