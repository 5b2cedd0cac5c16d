"""What names and expressions refer to: what the syntax states, and what follows from it across files.

To know what `run` is in `job.run()`, one asks in turn: `definitions.py` where `job` is declared, through scopes,
imports and re-exports; `types.py` of which types it may be, by its annotation, value or constructor; and `kinship.py`
whether such a type is a given class or derives from it, base by base: the same, another, or unknown.
What gives a name its type, and what an expression is made of, one query per language says (`python.scm`); where a
grammar names no fields, `code/parts.py` knows which child is which. `symbol.py` says what a renamed name was, and finds
names that look alike where no declaration of it is known.

A chain of names, imports and bases is followed for twelve steps. `code/answers.py` remembers each answer, interrupts a
question every 10 ms to ask it again where it was, and ends it after 20,000 answers. Files that import nothing from
where a definition may be seen are not parsed: `code/importers.py` knows by the words of import statements.
"""
