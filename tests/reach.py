"""What crosses a boundary of the product without a sender or a reader in it."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from mercury_engine.tokens import vocabulary

ROOT = Path(__file__).parent.parent
SETTINGS = ROOT / "mercury_ls/settings/schema.py"
LSP_MESSAGES = ROOT / "mercury_ls/lsp/protocol.py"
ENGINE_MESSAGES = (ROOT / "engine/mercury_engine/api.py", ROOT / "mercury_ls/link/wire.py")
ENGINE_ROUTES = ROOT / "mercury_ls/serve/app.py"
WEB = ROOT / "mercury_ls/web"
FROM_OUTSIDE = (SETTINGS, *WEB.glob("*schemas.py"))
"""What users and HTTP clients write: any value of these literals may come."""

TRAINED = "its id is a row of trained weights"
DRAFTS = "bench.replay and bench.judged ask for drafts"
UNUSED = {
    "field EngineInfo.prompts": "bench.latency tells what each key waits for",
    "field StatusParams.digests": "bench.abuse compares the server's texts with its own",
    "field SuggestParams.partial_result_token": DRAFTS,
    "value Finish.tool_calls": "sent on as it is",
    "value LogSettings.level.debug": "logging knows it by this name",
    "value LogSettings.level.warning": "logging knows it by this name",
    "value Message.role.assistant": "sent on as it is",
    "value Severity.hint": "sent on as it is",
    "value Severity.warning": "sent on as it is",
    "value SuggestSettings.trigger.typing": "whatever is not by request",
    "answer busy": "read by Copilot's clients",
    "answer days": "for scripts, like `mercury-ls stats --json`",
    "answer digests": "bench.abuse compares the server's texts with its own",
    "answer pendingWork": "bench.server looks for work that is left over",
    "answer source": DRAFTS,
    "answer step": DRAFTS,
    "answer tokens": DRAFTS,
    "answer user": "read by Copilot's clients",
    "token <del>": TRAINED,
    "token <keep>": TRAINED,
    "token <tool>": TRAINED,
    "token </tool>": TRAINED,
    "token <result>": TRAINED,
    "token </result>": TRAINED,
    "token <json>": TRAINED,
    "token </json>": TRAINED,
    **{f"token <reserved{number}>": TRAINED for number in range(5)},
}
"""What stays on purpose, and why. What is used after all has to go."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(folder: str) -> dict[Path, list[ast.AST]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return {path: [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))] for path in paths}


PACKAGES = ("mercury_ls", "engine")
PRODUCT = parsed("mercury_ls") | parsed("engine/mercury_engine")
NODES = [*chain.from_iterable(PRODUCT.values())]
CALLS = [node for node in NODES if isinstance(node, ast.Call)]
CLASSES = [node for node in NODES if isinstance(node, ast.ClassDef)]
ASSIGNMENTS = [node for node in NODES if isinstance(node, ast.Assign)]
EDITORS = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("vscode/src", "nvim", "vim", "zed/src")
    for path in sorted((ROOT / "editors" / folder).rglob("*"))
    if path.suffix in (".ts", ".lua", ".js", ".rs")
)


def unused() -> Iterator[str]:
    return chain(unused_fields(), unused_settings(), unused_values(), unused_lsp(), unused_routes(), unused_tokens())


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def strings(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


# Fields: sent by a call that names them or has as many arguments, read by an attribute


def fields_of(kind: ast.ClassDef) -> dict[str, ast.expr]:
    fields = [node for node in kind.body if isinstance(node, ast.AnnAssign)]
    return {name_of(node.target): node.annotation for node in fields if "ClassVar" not in ast.unparse(node.annotation)}


FIELDS = {kind.name: [*fields_of(kind)] for kind in CLASSES}
HEIRS = {kind.name: [heir.name for heir in CLASSES if kind.name in map(name_of, heir.bases)] for kind in CLASSES}


def passed(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)
    yield from zip(FIELDS.get(name_of(call.func), ()), call.args, strict=False)


def loaded_by(package: str) -> set[str]:
    """The attributes that its modules and its page read."""
    page = [name for path in (ROOT / package).rglob("*.js") for name in re.findall(r"\.(\w+)", path.read_text("utf-8"))]
    nodes = chain.from_iterable(nodes for path, nodes in PRODUCT.items() if path.is_relative_to(ROOT / package))
    loads = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load))
    return {*page, *(node.attr for node in loads)}


LOADED = {package: loaded_by(package) for package in PACKAGES}
SENT = {(name_of(call.func), field) for call in CALLS for field, _ in passed(call)}


def is_sent(kind: str, field: str) -> bool:
    return any((function, field) in SENT for function in (kind, *HEIRS[kind], "cls", "replace"))


def is_read(kind: str, field: str) -> bool:
    """By the engine if a request has it, by the language server if an answer has it."""
    return any(field in LOADED[package] for package in readers_of(kind))


def readers_of(kind: str) -> list[str]:
    reading = {package for package, kinds in zip(PACKAGES, (ANSWERS, REQUESTS), strict=True) if kind in kinds}
    return [*(reading or PACKAGES)]


def unused_fields() -> Iterator[str]:
    for path in (*ENGINE_MESSAGES, LSP_MESSAGES):
        for kind, field in declared(path):
            ours = (is_sent(kind, field), is_read(kind, field))
            is_used = any(ours) and in_editors(camel(field)) if path == LSP_MESSAGES else all(ours)
            if not is_used:
                yield f"field {kind}.{field}"


def unused_settings() -> Iterator[str]:
    yield from (f"setting {kind}.{field}" for kind, field in declared(SETTINGS) if not is_read(kind, field))


def declared(path: Path) -> Iterator[tuple[str, str]]:
    kinds = [node for node in PRODUCT[path] if isinstance(node, ast.ClassDef)]
    yield from ((kind.name, field) for kind in kinds for field in fields_of(kind))


def mentioned(annotations: Iterable[ast.expr | None]) -> set[str]:
    """The names in annotations, and in those of the fields of what they name."""
    names = {name_of(part) for annotation in annotations if annotation for part in ast.walk(annotation)} & FIELDS.keys()
    inner = [annotation for kind in API_CLASSES if kind.name in names for annotation in fields_of(kind).values()]
    return names | (mentioned(inner) if inner else set())


API_CLASSES = [node for node in PRODUCT[ENGINE_MESSAGES[0]] if isinstance(node, ast.ClassDef)]
METHODS = [
    node
    for kind in API_CLASSES
    if kind.name.endswith("Engine")
    for node in kind.body
    if isinstance(node, ast.FunctionDef)
]
REQUESTS = mentioned(parameter.annotation for method in METHODS for parameter in method.args.args)
ANSWERS = mentioned(method.returns for method in METHODS)


# Values of literals: sent by what goes into a name of this type, read by what is compared

ALIASES = {
    name_of(node.targets[0]): strings(ast.walk(node.value))
    for node in ASSIGNMENTS
    if isinstance(node.value, ast.Subscript) and name_of(node.value.value) == "Literal"
}


def unused_values() -> Iterator[str]:
    typed = [(name, values) for name, values in annotated(NODES) if values]
    from_outside = [values for path in FROM_OUTSIDE for _, values in annotated(PRODUCT[path])]
    assigned = defaultdict[str, set[str]](set)
    for name, value in assignments():
        assigned[name] |= possible(value)
    compared = strings(compared_nodes())
    for literal, values in literals().items():
        sources = [assigned[name] for name, others in typed if is_alike(values, others)]
        sources += [others for others in from_outside if is_alike(values, others)]
        used = set[str]().union(*sources) & compared
        yield from (f"value {literal}.{value}" for value in values - used)


def is_alike(values: set[str], others: set[str]) -> bool:
    """Whether these are literals for the same, of which one may have fewer values."""
    return len(values & others) > 1


def literals() -> dict[str, set[str]]:
    """Those of the engine's messages and of the settings, by their own name or else by that of the field."""
    messages = {node for path in (*ENGINE_MESSAGES, SETTINGS) for node in PRODUCT[path]}
    aliases = {name_of(node.targets[0]) for node in ASSIGNMENTS if node in messages} & ALIASES.keys()
    fields = {
        f"{kind.name}.{field}": values_in(annotation)
        for kind in CLASSES
        if kind in messages
        for field, annotation in fields_of(kind).items()
        if not any(name_of(part) in ALIASES for part in ast.walk(annotation))
    }
    return {name: ALIASES[name] for name in aliases} | {name: values for name, values in fields.items() if values}


def annotated(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, set[str]]]:
    """Variables, fields, parameters, and functions by what they return."""
    for node in nodes:
        if isinstance(node, ast.AnnAssign):
            yield name_of(node.target), values_in(node.annotation)
        elif isinstance(node, ast.arg):
            yield node.arg, values_in(node.annotation)
        elif isinstance(node, Function):
            yield node.name, values_in(node.returns)


def values_in(annotation: ast.expr | None) -> set[str]:
    """The values of its literals. A tuple lists what is possible, and sends none of it."""
    if annotation is None or (isinstance(annotation, ast.Subscript) and name_of(annotation.value) == "tuple"):
        return set()
    parts = [*ast.walk(annotation)]
    inline = [part for part in parts if isinstance(part, ast.Subscript) and name_of(part.value) == "Literal"]
    aliases = [ALIASES.get(name_of(part), set()) for part in parts]
    return strings(value for part in inline for value in ast.walk(part)).union(*aliases)


def assignments() -> Iterator[tuple[str, ast.expr | None]]:
    for node in NODES:
        if isinstance(node, ast.AnnAssign):
            yield name_of(node.target), node.value
        elif isinstance(node, ast.Assign):
            yield from ((name_of(target), node.value) for target in node.targets)
        elif isinstance(node, ast.Call):
            yield from passed(node)
        elif isinstance(node, Function) and values_in(node.returns):
            yield from ((node.name, part.value) for part in ast.walk(node) if isinstance(part, ast.Return))


def possible(node: ast.AST | None) -> set[str]:
    """The strings that an expression may be: not those that it compares with, or lists."""
    if isinstance(node, ast.Constant):
        return strings([node])
    if node is None or isinstance(node, ast.Compare | ast.Tuple | ast.List | ast.Set):
        return set()
    parts = node.values if isinstance(node, ast.Dict) else ast.iter_child_nodes(node)
    return set[str]().union(*map(possible, parts))


def compared_nodes() -> Iterator[ast.AST | None]:
    for node in NODES:
        if isinstance(node, ast.Compare):
            yield from ast.walk(node)
        elif isinstance(node, ast.Dict):
            yield from node.keys
        elif isinstance(node, ast.MatchValue):
            yield node.value


# Messages to editors and to the engine's server


def unused_lsp() -> Iterator[str]:
    modules = {path: nodes for path, nodes in PRODUCT.items() if path.parent == LSP_MESSAGES.parent}
    ours = {text for text in strings(chain.from_iterable(modules.values())) if re.fullmatch(r"mercury/\w+", text)}
    theirs = set(re.findall(r"['\"](mercury/\w+)['\"]", EDITORS))
    yield from (f"message {name}" for name in ours ^ theirs)
    del modules[LSP_MESSAGES]
    answers = [node for node in chain.from_iterable(modules.values()) if isinstance(node, ast.Dict)]
    keys = filter(str.isidentifier, strings(key for answer in answers for key in answer.keys))
    yield from (f"answer {key}" for key in keys if not in_editors(key))


def in_editors(name: str) -> bool:
    """Whether a plugin names it as a field."""
    return bool(re.search(rf"\.{name}\b|['\"]{name}['\"]|\b{name}\s*\??[:=]|[{{,]\s*{name}\s*[,}}]", EDITORS))


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def unused_routes() -> Iterator[str]:
    """Of the engine's server, which clients call by what is behind the version."""
    routes = {text for text in strings(PRODUCT[ENGINE_ROUTES]) if re.fullmatch(r"/\w+", text)}
    others = [nodes for path, nodes in PRODUCT.items() if path != ENGINE_ROUTES and path.parent != WEB]
    yield from (f"route {route}" for route in routes - strings(chain.from_iterable(others)))


# Tokens


def unused_tokens() -> Iterator[str]:
    """Those that neither the engine nor the training reads or writes by name. Languages are looked up."""
    nodes = chain(NODES, *parsed("training").values())
    loaded = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names = [*vars(vocabulary)]
    ids = [getattr(vocabulary, name) for name in names[names.index("SPECIALS") + 1 :] if name in loaded]
    used = {id for value in ids for id in ([value] if isinstance(value, int) else value)}
    specials = enumerate(vocabulary.SPECIALS)
    yield from (f"token {text}" for id, text in specials if id not in used and not text.startswith("<lang:"))
