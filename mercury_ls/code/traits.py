"""What languages have in common, as far as names and renames depend on it: sets of language ids, or of families where
languages import each other's files. A language in none of them is still completed; its renames just find less."""

from mercury_ls.code.languages import kinds

ASSIGNMENTS_DECLARE_NOTHING = frozenset(
    {"c", "cpp", "csharp", "go", "java", "javascript", "kotlin", "rust", "tsx", "typescript"}
)
BARE_MEMBERS = frozenset({"c", "cpp", "csharp", "java", "kotlin"})
"""A method refers to members of its own type without a qualifier."""
CLASSES = frozenset({"java", "javascript", "kotlin", "python"})
"""Families whose classes inherit from classes that their headers name."""
EXPLICIT_NAMES = frozenset({"javascript", "python", "tsx", "typescript"})
"""A bare name that a file neither declares nor imports is the language's own."""
EXPLICIT_SELF = frozenset({"python", "rust"})
"""Methods are given what they belong to."""
GIVING_NO_RECEIVER = frozenset(
    kinds("""
    all also any associate associateBy associateWith check checkNotNull count distinctBy dropWhile filter
    filterIndexed filterNot find findLast first firstOrNull flatMap fold forEach forEachIndexed generateSequence
    getOrElse getOrPut groupBy indexOfFirst indexOfLast joinToString last lastOrNull lazy let map mapIndexed
    mapIndexedNotNull mapKeys mapNotNull mapTo mapValues maxBy maxByOrNull maxOf minBy minByOrNull minOf none onEach
    partition reduce removeAll removeIf repeat require requireNotNull single singleOrNull sortBy sortByDescending
    sortedBy sortedByDescending sumBy sumOf synchronized takeIf takeUnless takeWhile thread use withLock zip
    """)
)
"""Functions of Kotlin's library whose lambdas are not called on an object."""
IMPLICIT_RECEIVERS = frozenset({"kotlin"})
"""A bare name may be a member of an object that a lambda or an extension is given."""
IMPORTS_KNOWN = frozenset({"go", "java", "javascript", "kotlin", "python", "rust"})
"""Families whose import statements `modules.py` resolves."""
JUMPS_ARE_EXPRESSIONS = frozenset({"ruby", "rust"})
"""`return` and `break` may be arguments."""
OVERLOADING = frozenset({"cpp", "csharp", "java", "kotlin"})
OVERLOAD_SIGNATURES = frozenset({"tsx", "typescript"})
"""A function is declared once for each way to call it, and once more with its body."""
NAMED_BY = {"kotlin": " = ", "python": "="}
"""What stands between the name of an argument and its value."""
NESTING = frozenset({"java", "kotlin"})
"""Types hide what is declared around them by the names of their members."""
OVERRIDING_FIELDS = frozenset({"kotlin"})
PACKAGED = frozenset({"go", "java", "kotlin", "rust"})
"""A file need not import what it has an object of."""
SCATTERED_PACKAGES = frozenset({"kotlin"})
"""The files of a package may be anywhere, and declare anything."""
SEQUENTIAL_LOCALS = frozenset({"c", "cpp", "csharp", "go", "java", "kotlin", "rust"})
"""A local is visible only after its declaration."""
THIS = frozenset({"java", "javascript", "kotlin"})
"""Families in which `this` and `super` are what a method is called on."""
TYPES_APART = frozenset({"c", "cpp", "csharp", "java", "javascript", "rust"})
"""A type and a value may have one name."""
