"""The extension's settings, from the server's schema: `python -m tests.editors.vscode.manifest` renews them."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from mercury_ls.settings.schema import settings

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs/settings.schema.json"
MANIFEST = ROOT / "editors/vscode/package.json"

FOR_THE_MACHINE = re.compile(r"engine\.model|privacy\..*")
"""Beside what is personal anyway: a folder's settings name no model by its path, and take no secret pattern back."""


def renewed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with the server's settings behind the extension's own."""
    groups = generated(json.loads(SCHEMA.read_text(encoding="utf-8")))
    groups = manifest["contributes"]["configuration"][:1] + groups
    manifest["contributes"]["configuration"] = groups
    properties = {name: value for group in groups for name, value in group["properties"].items()}
    restricted = [name for name, value in properties.items() if value["scope"] != "machine"]
    manifest["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"] = restricted
    return manifest


def generated(schema: dict[str, Any]) -> list[dict[str, Any]]:
    definitions = schema["$defs"]
    groups = []
    for group, reference in definitions["Settings"]["properties"].items():
        described = definitions[reference["$ref"].rpartition("/")[2]]
        properties = {
            f"mercury.{group}.{camel_case(name)}": property_of(f"{group}.{name}", value, order)
            for order, (name, value) in enumerate(described["properties"].items())
        }
        groups.append({"title": group.capitalize(), "properties": properties})
    return groups


def property_of(path: str, value: dict[str, Any], order: int) -> dict[str, Any]:
    kind = {"type": "string"} if "enum" in value else {}
    rest = {name: part for name, part in value.items() if name != "description"}
    scope = "machine" if settings()[path].personal or FOR_THE_MACHINE.fullmatch(path) else "window"
    return {**kind, **rest, "scope": scope, "order": order, "markdownDescription": linked(value["description"])}


def linked(description: str) -> str:
    """Settings that are spoken of become links to them."""
    return re.sub(r"`([a-z]+\.[a-z_]+)`", lambda m: link(m[1]) if m[1] in settings() else m[0], description)


def link(path: str) -> str:
    group, _, name = path.partition(".")
    return f"`#mercury.{group}.{camel_case(name)}#`"


def camel_case(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)


def text_of(manifest: dict[str, Any]) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    MANIFEST.write_text(text_of(renewed(manifest)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
