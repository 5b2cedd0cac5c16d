"""What a name was that got another one: a local, a member, or something at the top of a file."""

from msgspec import Struct
from tree_sitter import Node

from mercury_ls.code import scopes, symbols, traits
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.index import facts
from mercury_ls.code.index.definitions import Declaration, declaring_type
from mercury_ls.code.languages import family
from mercury_ls.code.parts import kind_of, part_of
from mercury_ls.code.scopes import Binding
from mercury_ls.code.symbols import last_name, text_of
from mercury_ls.code.syntax import innermost


class Symbol(Struct, frozen=True):
    """`local` is the binding of a parameter or a local, `function` the function that a parameter belongs to.

    `owner` is the type that declares a member, also by a parameter of its constructor. `module_level` means that it is
    declared at the top of a file and is nothing's member.
    """

    node: Node | None = None
    path: str = ""
    local: Binding | None = None
    owner: Node | None = None
    function: str = ""
    module_level: bool = False

    def is_local_at(self, node: Node | None) -> bool:
        """Whether a name can only be the local there: a parameter that is a field as well is qualified as a field."""
        return self.local is not None and (self.owner is None or node is None or not symbols.is_qualified(node))

    def is_same_local(self, name: str, snapshot: Snapshot, offset: int) -> bool:
        """Whether a name of the symbol's file, which had this `name` until now, is the same local."""
        node = scopes.node_at(snapshot, offset)
        if node is None or self.local is None or self.path != snapshot.path or symbols.is_qualified(node):
            return False
        bound = scopes.binding_at(snapshot, offset, (name,), self.local)
        return bound is not None and bound.reach == self.local.reach

    def is_alike(self, name: str, snapshot: Snapshot, offset: int) -> bool:
        """Whether the name there looks like this one, whose declaration is not known: a local stays in its scope, a
        member is none of another type's own object."""
        node = scopes.node_at(snapshot, offset)
        if node is None or self.node is None:
            return scopes.binding_at(snapshot, offset, (name,)) is None
        if symbols.category(self.node, snapshot) != symbols.category(node, snapshot):
            return False
        if self.is_local_at(node):
            return self.is_same_local(name, snapshot, offset)
        is_member, function = scopes.is_member(self.node), symbols.called_with_keyword(self.node)
        if is_member != scopes.is_member(node) or function != symbols.called_with_keyword(node):
            return False
        whose, own = symbols.qualifier_of(node), symbols.qualifier_of(self.node)
        if symbols.is_capitalized(whose) and symbols.is_capitalized(own):
            return whose == own
        if is_member:
            return not _is_of_another_self(self.node, node)
        return symbols.is_qualified(node) or scopes.local_at(snapshot, offset, (name,)) is None

    def is_named_by_namespace(self, node: Node) -> bool:
        """Whether a name of its file is `a::load`, where `a` is the module within the file that declares it."""
        space = symbols.namespace_of(self.node) if self.node is not None else ""
        return bool(space) and symbols.qualifier_of(node) == space

    def runs_after(self, snapshot: Snapshot, node: Node) -> bool:
        """Whether Python reads a name before the declaration has run: the second `str` of `str = str` is another."""
        if self.path != snapshot.path or family(self.path) != "python":
            return False
        statement = self.node and self.node.parent
        if statement is None or scopes.declares(node):
            return False
        return node.start_byte < statement.end_byte and innermost(node.parent, scopes.FUNCTIONS) is None

    def may_be(self, definition: Declaration) -> bool:
        """Whether it is declared where its file may declare it, which may do so several times."""
        file, name = definition.file, definition.name
        if file.path != self.path or symbols.owner_of(name) is not None or scopes.binding(file, name) is not None:
            return False
        return self.node is not None and symbols.namespace_of(name) == symbols.namespace_of(self.node)

    def declarations(self, name: str, home: Snapshot) -> list[Node]:
        """What the file declares by this name in the same function or type."""
        owner = self.owner if self.local is None else None
        target = self.local and self.local.reach, symbols.type_name(owner)
        nodes: list[Node] = []
        for at, node in scopes.nodes_of(home, name):
            owner = declaring_type(home, node)
            if scopes.declares(node) or owner is not None:
                local = scopes.local_at(home, at, (name,))
                if (local and local.reach, symbols.type_name(None if local else owner)) == target:
                    nodes.append(node)
        return nodes


def symbol_at(before: str, after: str, home: Snapshot, offset: int) -> Symbol:
    """What the name at `offset` of `home` refers to."""
    node = scopes.node_at(home, offset)
    if node is None:
        return Symbol()
    local = scopes.local_at(home, offset, (before, after))
    declared, is_field = scopes.declares(node), "field" in facts.of_name(home, node)
    owner = None if local and declared and not is_field else declaring_type(home, node)
    return Symbol(
        node=node,
        path=home.path,
        local=local,
        owner=owner,
        function=last_name(function_of_parameter(node)) if local and scopes.in_parameters(home, offset) else "",
        module_level=declared and not local and owner is None and not scopes.is_member(node),
    )


@cached
def has_overloads(home: Snapshot, symbol: Symbol) -> bool:
    """Whether several functions of the file have its name, or the class that it is has several constructors."""
    if symbol.node is None or symbol.node.parent is None or family(home.path) not in traits.OVERLOADING:
        return False
    is_several = len(symbol.declarations(text_of(symbol.node), home)) > 1
    return is_several or symbols.has_several_constructors(symbol.node.parent)


def _is_of_another_self(member: Node, node: Node) -> bool:
    """True if both are members of the objects whose methods use them, and these are of unrelated types."""
    if not symbols.is_of_self(member) or not symbols.is_of_self(node):
        return False
    member_class, node_class = symbols.enclosing(member), symbols.enclosing(node)
    return member_class is not None and node_class is not None and not symbols.are_related(member_class, node_class)


def function_of_parameter(node: Node) -> Node | None:
    """The name of what is called to give this parameter a value: for a constructor, that of the class."""
    around = innermost(node.parent, (*scopes.FUNCTIONS, "primary_constructor"))
    named = part_of(around, "name")
    is_constructor = text_of(named) == "__init__" or kind_of(around).endswith("_constructor")
    whole = symbols.enclosing(around) if is_constructor else None
    return part_of(whole, "name") if whole is not None else named
