"""The supported languages: their files, grammars, and names for the parts of a syntax tree."""

import importlib
from functools import cache

import tree_sitter
from msgspec import Struct
from msgspec.structs import replace


class Quote(Struct, frozen=True):
    """A kind of string literal. `code` opens an interpolation, closed by `}` or `)`, but only in strings prefixed by
    one of the letters in `after`, if there are any.
    """

    opening: str
    closing: str
    multiline: bool = False
    escapes: bool = True
    code: str = ""
    after: str = ""


class Language(Struct, frozen=True, kw_only=True):
    """The tuples from `comments` to `definitions` hold node kinds of the grammar; `grammar` is where that is, unless it
    is named after the id.

    `header` (a line that opens a scope, with its name) and `opening` (the end of a line that a body follows) are
    regular expressions. Like `quotes` and the comment marks, they also work on broken code, which is the normal state
    of a file being typed. `interpolating` stands before a name in a string that is code. A node in `scopes` or
    `definitions` has its name and body in fields of these names, or in its `declarator` and `value`.
    """

    id: str
    grammar: tuple[str, str] | None = None
    aliases: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    line_comment: str = ""
    block_comment: tuple[str, str] | None = None
    quotes: tuple[Quote, ...] = ()
    comments: tuple[str, ...] = ("comment",)
    strings: tuple[str, ...] = ()
    interpolations: tuple[str, ...] = ()
    interpolating: str = ""
    blocks: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    header: str = ""
    opening: str = ""
    indents_blocks: bool = False

    @property
    def binding(self) -> tuple[str, str]:
        """The package that has the grammar, and its function that returns it."""
        return self.grammar or (f"tree_sitter_{self.id}", "language")

    @property
    def family(self) -> str:
        """A name shared by languages that import each other's files."""
        return "javascript" if self.id in ("tsx", "typescript") else self.id


def kinds(words: str) -> tuple[str, ...]:
    """Node kinds, separated by whitespace."""
    return tuple(words.split())


DOUBLE = Quote('"', '"')
SINGLE = Quote("'", "'")
TRIPLE = Quote('"""', '"""', multiline=True)

BRACE_OPENING = (
    # behind a closing bracket or a word alone; a statement; a type or function; a function with its result type
    r"(?:\)|=>|\b(?:else|try|do|finally|loop|unsafe|async|move|const|static|get|set|init|default:)"
    r"|^\s*(?:\}\s*else\s+)?(?:if|for|foreach|while|switch|match|select|catch|lock|using|with)\b.*"
    r"|\b(?:class|struct|enum|union|interface|trait|impl|namespace|mod|module|extern|fn|func|function|record)\b[^;{}=]*"
    r"|\)\s*(?:->|:|throws\b|const\b|noexcept\b|override\b|where\b|\w)[^;{}=]*)\s*\{$"
)
C_NOT_A_TYPE = r"(?!\s*(?:return|else|new|throw|case|goto|delete|await|yield|using|import|package)\b)"
C_FUNCTION = r"[ \t]*(?:[\w:<>,~*&\[\]?.]+[ \t]+)+[*&]*(?P<function>~?\w[\w:~]*)[ \t]*\([^;]*$"

JS_HEADER = (
    r"[ \t]*(?:(?:export|default|declare|abstract|async|const)[ \t]+)*"
    r"(?P<kind>function\b[ \t]*\*?|class|interface|enum|namespace|module)[ \t]+(?P<name>[\w$]+)"
    r"|[ \t]*(?:export[ \t]+)?(?:const|let|var)[ \t]+(?P<function>[\w$]+)[^=]*=[ \t]*"
    r"(?:async\b.*|function\b.*|.*=>[ \t]*)\{?$"
    r"|[ \t]+(?:(?:static|async|get|set|public|private|protected|readonly|override|abstract)[ \t]+)*"
    r"(?!(?:if|for|while|switch|catch|return|function|with|super|await)\b)(?P<method>[\w$#]+)[^;=(]*\([^;]*\{$"
)

C_DEFINITIONS = kinds(
    "enum_specifier function_definition preproc_def preproc_function_def struct_specifier type_definition"
    " union_specifier"
)

BRACES = Language(id="", line_comment="//", block_comment=("/*", "*/"), opening=BRACE_OPENING)
"""What most languages with braces have in common."""

PYTHON = Language(
    id="python",
    extensions=(".py", ".pyi", ".pyw"),
    filenames=("SConstruct", "SConscript"),
    line_comment="#",
    quotes=(
        Quote('"""', '"""', multiline=True, code="{", after="fF"),
        Quote("'''", "'''", multiline=True, code="{", after="fF"),
        Quote('"', '"', code="{", after="fF"),
        Quote("'", "'", code="{", after="fF"),
    ),
    strings=("string",),
    interpolations=("interpolation",),
    blocks=("block",),
    scopes=("class_definition", "function_definition"),
    imports=("future_import_statement", "import_from_statement", "import_statement"),
    definitions=("assignment", "class_definition", "function_definition", "type_alias_statement"),
    header=r"[ \t]*(?:async[ \t]+)?(?P<kind>def|class)[ \t]+(?P<name>\w+)",
    opening=(
        r"^\s*(?:(?:async|def|class|if|elif|for|while|with|except|match|case)\b.*|(?:else|try|finally)\s*"
        r"|\)\s*(?:->.*)?):$"
    ),
    indents_blocks=True,
)
JAVASCRIPT = replace(
    BRACES,
    id="javascript",
    aliases=("javascriptreact", "js", "jsx"),
    extensions=(".js", ".mjs", ".cjs", ".jsx"),
    filenames=("Jakefile",),
    quotes=(DOUBLE, SINGLE, Quote("`", "`", multiline=True, code="${")),
    comments=("comment", "html_comment"),
    strings=("string", "template_string"),
    interpolations=("template_substitution",),
    blocks=("class_body", "class_static_block", "statement_block", "switch_body"),
    scopes=kinds(
        "arrow_function class_declaration function_declaration function_expression generator_function_declaration"
        " method_definition"
    ),
    imports=("expression_statement", "import_statement", "lexical_declaration", "variable_declaration"),
    definitions=kinds(
        "class_declaration function_declaration generator_function_declaration method_definition variable_declarator"
    ),
    header=JS_HEADER,
)
TYPESCRIPT = replace(
    JAVASCRIPT,
    id="typescript",
    grammar=("tree_sitter_typescript", "language_typescript"),
    aliases=("ts",),
    extensions=(".ts", ".mts", ".cts"),
    filenames=(),
    blocks=(*JAVASCRIPT.blocks, "enum_body", "interface_body"),
    scopes=JAVASCRIPT.scopes
    + kinds("abstract_class_declaration enum_declaration interface_declaration internal_module"),
    definitions=JAVASCRIPT.definitions
    + kinds(
        "abstract_class_declaration abstract_method_signature enum_declaration function_signature"
        " interface_declaration internal_module type_alias_declaration"
    ),
)
TSX = replace(
    TYPESCRIPT,
    id="tsx",
    grammar=("tree_sitter_typescript", "language_tsx"),
    aliases=("typescriptreact",),
    extensions=(".tsx",),
)
RUST = replace(
    BRACES,
    id="rust",
    aliases=("rs",),
    extensions=(".rs",),
    quotes=(
        Quote('r#"', '"#', multiline=True, escapes=False),
        Quote('r"', '"', multiline=True, escapes=False),
        Quote('"', '"', multiline=True),
    ),
    comments=("block_comment", "line_comment"),
    strings=("char_literal", "raw_string_literal", "string_literal"),
    blocks=("block", "declaration_list", "enum_variant_list", "field_declaration_list", "match_block"),
    scopes=("enum_item", "function_item", "impl_item", "mod_item", "struct_item", "trait_item"),
    imports=("extern_crate_declaration", "use_declaration"),
    definitions=kinds(
        "const_item enum_item function_item function_signature_item macro_definition mod_item static_item"
        " struct_item trait_item type_item union_item"
    ),
    header=(
        r'[ \t]*(?:(?:pub(?:\([^)]*\))?|async|unsafe|const|default|extern(?:[ \t]+"[^"]*")?)[ \t]+)*'
        r"(?P<kind>fn|struct|enum|trait|impl|mod|union)\b[ \t]*(?:<[^>]*>[ \t]*)?(?P<name>\w+)"
    ),
)
GO = replace(
    BRACES,
    id="go",
    aliases=("golang",),
    extensions=(".go",),
    quotes=(DOUBLE, SINGLE, Quote("`", "`", multiline=True, escapes=False)),
    strings=("interpreted_string_literal", "raw_string_literal", "rune_literal"),
    blocks=kinds(
        "block expression_switch_statement field_declaration_list interface_type select_statement type_switch_statement"
    ),
    scopes=("func_literal", "function_declaration", "method_declaration", "type_declaration"),
    imports=("import_declaration",),
    definitions=("const_spec", "function_declaration", "method_declaration", "type_alias", "type_spec"),
    header=r"[ \t]*(?P<kind>func|type)[ \t]+(?:\([^)]*\)[ \t]*)?(?P<name>\w+)",
)
C = replace(
    BRACES,
    id="c",
    aliases=("objective-c",),
    extensions=(".c", ".h"),
    quotes=(DOUBLE, SINGLE),
    strings=("char_literal", "string_literal", "system_lib_string"),
    blocks=("compound_statement", "enumerator_list", "field_declaration_list"),
    scopes=("enum_specifier", "function_definition", "struct_specifier", "union_specifier"),
    imports=("preproc_include",),
    definitions=C_DEFINITIONS,
    header=r"[ \t]*(?:typedef[ \t]+)?(?P<kind>struct|enum|union)[ \t]+(?P<name>\w+)[ \t]*\{?$|"
    + C_NOT_A_TYPE
    + C_FUNCTION,
)
CPP = replace(
    BRACES,
    id="cpp",
    aliases=("c++", "cuda-cpp", "objective-cpp"),
    extensions=(".cc", ".cpp", ".cxx", ".cu", ".cuh", ".hh", ".hpp", ".hxx", ".ipp"),
    quotes=(Quote('R"(', ')"', multiline=True, escapes=False), DOUBLE, SINGLE),
    strings=("char_literal", "raw_string_literal", "string_literal", "system_lib_string"),
    blocks=("compound_statement", "declaration_list", "enumerator_list", "field_declaration_list"),
    scopes=kinds(
        "class_specifier enum_specifier function_definition lambda_expression namespace_definition struct_specifier"
        " union_specifier"
    ),
    imports=("preproc_include", "using_declaration"),
    definitions=(*C_DEFINITIONS, "alias_declaration", "class_specifier", "concept_definition"),
    header=(
        r"[ \t]*(?:(?:typedef|inline|template[ \t]*<.*>)[ \t]+)*"
        r"(?P<kind>class|struct|enum(?:[ \t]+class)?|union|namespace)[ \t]+(?P<name>\w+)[^;(]*$|"
        + C_NOT_A_TYPE
        + C_FUNCTION
    ),
)
JAVA = replace(
    BRACES,
    id="java",
    extensions=(".java",),
    quotes=(TRIPLE, DOUBLE, SINGLE),
    comments=("block_comment", "line_comment"),
    strings=("character_literal", "string_literal"),
    interpolations=("string_interpolation",),
    blocks=kinds("annotation_type_body block class_body constructor_body enum_body interface_body switch_block"),
    scopes=kinds(
        "class_declaration constructor_declaration enum_declaration interface_declaration lambda_expression"
        " method_declaration record_declaration"
    ),
    imports=("import_declaration", "package_declaration"),
    definitions=kinds(
        "annotation_type_declaration class_declaration constructor_declaration enum_declaration field_declaration"
        " interface_declaration method_declaration record_declaration"
    ),
    header=(
        r"[ \t]*(?:(?:public|private|protected|static|final|abstract|sealed|non-sealed|strictfp)[ \t]+)*"
        r"(?P<kind>class|interface|@interface|enum|record)[ \t]+(?P<name>\w+)|"
        + C_NOT_A_TYPE
        + C_FUNCTION
        + r"|[ \t]+(?P<method>[A-Z]\w*)[ \t]*\([^;]*\{$"
    ),
)
KOTLIN = replace(
    BRACES,
    id="kotlin",
    aliases=("kt",),
    extensions=(".kt", ".kts"),
    quotes=(
        Quote('"""', '"""', multiline=True, escapes=False, code="${"),
        Quote('"', '"', code="${"),
        SINGLE,
    ),
    comments=("block_comment", "line_comment", "shebang"),
    strings=("character_literal", "multiline_string_literal", "string_literal"),
    interpolations=("interpolation",),
    interpolating="$",
    blocks=("block", "class_body", "enum_class_body", "lambda_literal", "when_expression"),
    scopes=kinds(
        "anonymous_function class_declaration companion_object function_declaration lambda_literal object_declaration"
        " object_literal secondary_constructor"
    ),
    imports=("import", "package_header"),
    definitions=(
        "class_declaration",
        "function_declaration",
        "object_declaration",
        "property_declaration",
        "type_alias",
    ),
    header=(
        r"[ \t]*(?:(?!(?:fun|class|interface|object|val|var)\b)\w+[ \t]+)*"
        r"(?P<kind>fun[ \t]+interface|fun|class|interface|object)[ \t]+(?:<[^>]*>[ \t]*)?"
        r"(?:[\w<>?*, ]+\.)*(?P<name>\w+)"
    ),
    opening=BRACE_OPENING + r"|^\s*(?:[\w}]+\s+)*(?:when|fun|object|init)\b[^{}]*\{$|[\w)>]\s*\{(?:[^{}]*->)?$",
)
CSHARP = replace(
    BRACES,
    id="csharp",
    grammar=("tree_sitter_c_sharp", "language"),
    aliases=("c#", "cs"),
    extensions=(".cs", ".csx"),
    quotes=(
        Quote('$@"', '"', multiline=True, escapes=False, code="{"),
        Quote('@"', '"', multiline=True, escapes=False),
        Quote('$"', '"', code="{"),
        TRIPLE,
        DOUBLE,
        SINGLE,
    ),
    strings=kinds(
        "character_literal interpolated_string_expression raw_string_literal string_literal verbatim_string_literal"
    ),
    interpolations=("interpolation",),
    blocks=("accessor_list", "block", "declaration_list", "enum_member_declaration_list", "switch_body"),
    scopes=kinds(
        "class_declaration constructor_declaration enum_declaration interface_declaration lambda_expression"
        " local_function_statement method_declaration namespace_declaration property_declaration record_declaration"
        " struct_declaration"
    ),
    imports=("using_directive",),
    definitions=kinds(
        "class_declaration constructor_declaration delegate_declaration enum_declaration field_declaration"
        " interface_declaration method_declaration property_declaration record_declaration struct_declaration"
    ),
    header=(
        r"[ \t]*(?:(?:public|private|protected|internal|static|sealed|abstract|partial|readonly)[ \t]+)*"
        r"(?P<kind>class|interface|enum|record|struct|namespace)[ \t]+(?P<name>[\w.]+)|" + C_NOT_A_TYPE + C_FUNCTION
    ),
)
RUBY = Language(
    id="ruby",
    aliases=("rb",),
    extensions=(".rb", ".rake", ".gemspec", ".ru"),
    filenames=("Gemfile", "Rakefile", "Vagrantfile", "Guardfile", "Podfile", "Brewfile"),
    line_comment="#",
    block_comment=("\n=begin", "\n=end"),
    quotes=(Quote('"', '"', multiline=True, code="#{"), Quote("'", "'", multiline=True)),
    strings=("heredoc_body", "regex", "string", "string_array", "subshell", "symbol_array"),
    interpolations=("interpolation",),
    blocks=("block", "body_statement", "do_block", "then"),
    scopes=("class", "method", "module", "singleton_method"),
    imports=("call",),
    definitions=("assignment", "class", "method", "module", "singleton_method"),
    header=r"[ \t]*(?:private[ \t]+)?(?P<kind>def|class|module)[ \t]+(?:self\.)?(?P<name>[\w:]+[?!=]?)",
    opening=(
        r"^\s*(?:(?:private\s+)?def|class|module|if|elsif|unless|while|until|case|when|in|for|rescue)\b"
        r"(?!.*\b(?:end|then\s+\S.*)$).*$|^\s*(?:else|begin|ensure)$|\bdo(?:\s*\|[^|]*\|)?$|\{(?:\s*\|[^|]*\|)$"
    ),
)
PHP = replace(
    BRACES,
    id="php",
    grammar=("tree_sitter_php", "language_php"),
    extensions=(".php", ".phtml"),
    quotes=(Quote('"', '"', multiline=True, code="{$"), Quote("'", "'", multiline=True)),
    strings=("encapsed_string", "heredoc", "nowdoc", "shell_command_expression", "string"),
    blocks=("compound_statement", "declaration_list", "enum_declaration_list", "match_block", "switch_block"),
    scopes=kinds(
        "anonymous_function class_declaration enum_declaration function_definition interface_declaration"
        " method_declaration namespace_definition trait_declaration"
    ),
    imports=("expression_statement", "namespace_use_declaration"),
    definitions=kinds(
        "class_declaration const_element enum_declaration function_definition interface_declaration"
        " method_declaration trait_declaration"
    ),
    header=(
        r"[ \t]*(?:(?:public|private|protected|static|final|abstract|readonly)[ \t]+)*"
        r"(?P<kind>function|class|interface|trait|enum|namespace)[ \t]+&?(?P<name>[\w\\]+)"
    ),
)
BASH = Language(
    id="bash",
    aliases=("sh", "shellscript", "zsh"),
    extensions=(".sh", ".bash", ".zsh", ".ksh"),
    filenames=(".bashrc", ".bash_profile", ".bash_aliases", ".profile", ".zshrc", "PKGBUILD"),
    line_comment="#",
    quotes=(Quote('"', '"', multiline=True, code="$("), Quote("'", "'", multiline=True, escapes=False)),
    strings=("ansi_c_string", "heredoc_body", "raw_string", "string"),
    interpolations=("command_substitution", "expansion"),
    blocks=("compound_statement", "do_group"),
    scopes=("function_definition",),
    imports=("command",),
    definitions=("function_definition",),
    header=r"[ \t]*(?:function[ \t]+(?P<name>[\w:.-]+)|(?P<function>[\w:.-]+)[ \t]*\([ \t]*\))",
    opening=r"(?:^|[;\s])(?:then|do|else|\{)$|^\s*[^()]+\)$",
)
LUA = Language(
    id="lua",
    extensions=(".lua", ".luau", ".rockspec"),
    line_comment="--",
    block_comment=("--[[", "]]"),
    quotes=(DOUBLE, SINGLE, Quote("[[", "]]", multiline=True, escapes=False)),
    strings=("string",),
    blocks=("block",),
    scopes=("function_declaration", "function_definition"),
    imports=("function_call", "variable_declaration"),
    definitions=("function_declaration",),
    header=r"[ \t]*(?:local[ \t]+)?(?P<kind>function)[ \t]+(?P<name>[\w.:]+)",
    opening=r"\b(?:then|do|else|repeat)$|\bfunction\b[^()]*\([^()]*\)$",
)
JSON = Language(
    id="json",
    aliases=("jsonc",),
    extensions=(".json", ".jsonc", ".ipynb", ".webmanifest"),
    filenames=(".babelrc", ".prettierrc"),
    quotes=(DOUBLE,),
    strings=("string",),
)
HTML = Language(
    id="html",
    extensions=(".html", ".htm", ".xhtml"),
    block_comment=("<!--", "-->"),
    strings=("quoted_attribute_value",),
)
CSS = Language(
    id="css",
    extensions=(".css",),
    block_comment=BRACES.block_comment,
    quotes=(DOUBLE, SINGLE),
    comments=("comment", "js_comment"),
    strings=("string_value",),
    blocks=("block", "keyframe_block_list"),
    imports=("import_statement",),
    opening=r"\{$",
)
MARKDOWN = Language(
    id="markdown",
    aliases=("md",),
    extensions=(".md", ".markdown", ".mdown"),
    block_comment=("<!--", "-->"),
    comments=(),
)

LANGUAGES: tuple[Language, ...] = (
    PYTHON,
    JAVASCRIPT,
    TYPESCRIPT,
    TSX,
    RUST,
    GO,
    C,
    CPP,
    JAVA,
    KOTLIN,
    CSHARP,
    RUBY,
    PHP,
    BASH,
    LUA,
    JSON,
    HTML,
    CSS,
    MARKDOWN,
)


UNKNOWN = Language(id="")

BY_ID = {id: language for language in LANGUAGES for id in (language.id, *language.aliases)}
BY_NAME = {name: language for language in LANGUAGES for name in language.filenames}
BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}


def find(language_id: str, path: str) -> Language | None:
    """The language with the editor's id, else that of the file name."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    extension = "." + name.rsplit(".", 1)[-1].lower() if "." in name else ""
    return BY_ID.get(language_id.lower()) or BY_NAME.get(name) or BY_EXTENSION.get(extension)


def family(path: str) -> str:
    """That of the language of the file name; empty without one."""
    return _suffix_family(path[path.rfind(".") :]) if "." in path else ""


@cache
def _suffix_family(suffix: str) -> str:
    language = find("", f"x{suffix}")
    return language.family if language is not None else ""


@cache
def parser(language: Language) -> tree_sitter.Parser:
    return new_parser(language)


def new_parser(language: Language) -> tree_sitter.Parser:
    """A parser that is not shared, for a parse that is interrupted by others."""
    return tree_sitter.Parser(grammar(language))


@cache
def query(language: Language, pattern: str) -> tree_sitter.Query:
    return tree_sitter.Query(grammar(language), pattern)


def grammar(language: Language) -> tree_sitter.Language:
    module, function = language.binding
    pointer: object = getattr(importlib.import_module(module), function)()
    return tree_sitter.Language(pointer)
