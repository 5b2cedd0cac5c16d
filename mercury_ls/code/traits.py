"""What languages have in common, as far as names and renames depend on it: sets of language ids, or of families where
languages import each other's files. A language in none of them is still completed; its renames just find less."""

ASSIGNMENTS_DECLARE_NOTHING = frozenset({"c", "cpp", "csharp", "go", "java", "javascript", "rust", "tsx", "typescript"})
BARE_MEMBERS = frozenset({"c", "cpp", "csharp", "java"})
"""A method refers to members of its own type without a qualifier."""
CLASSES = frozenset({"java", "javascript", "python"})
"""Families whose classes inherit from classes that their headers name."""
EXPLICIT_NAMES = frozenset({"javascript", "python", "tsx", "typescript"})
"""A bare name that a file neither declares nor imports is the language's own."""
EXPLICIT_SELF = frozenset({"python", "rust"})
"""Methods are given what they belong to."""
IMPORTS_KNOWN = frozenset({"go", "java", "javascript", "python", "rust"})
"""Families whose import statements `modules.py` resolves."""
JUMPS_ARE_EXPRESSIONS = frozenset({"ruby", "rust"})
"""`return` and `break` may be arguments."""
KEYWORD_ARGUMENTS = frozenset({"csharp", "php", "python", "ruby"})
OVERLOADING = frozenset({"cpp", "csharp", "java"})
OVERLOAD_SIGNATURES = frozenset({"tsx", "typescript"})
"""A function is declared once for each way to call it, and once more with its body."""
PACKAGED = frozenset({"go", "java", "rust"})
"""A file need not import what it has an object of."""
SEQUENTIAL_LOCALS = frozenset({"c", "cpp", "csharp", "go", "java", "rust"})
"""A local is visible only after its declaration."""
SPREAD_MEMBERS = frozenset({"csharp", "go", "rust"})
"""The members of one type may be spread over several files."""
TYPE_BEFORE_NAME = frozenset({"c", "cpp", "csharp", "java", "php"})
"""Of a parameter."""
TYPES_APART = frozenset({"c", "cpp", "csharp", "java", "javascript", "rust"})
"""A type and a value may have one name."""
