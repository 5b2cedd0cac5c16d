"""Rename: a name became another; wherever the old one refers to the same symbol, it follows, in other files as well.

A rename is certain if the user renamed the declaration, which `declared.py` tells. After `def area(w)` of `class Box`
became `def surface(w)`, `uses.py` answers one of three for each `.area` in the indexed files that contain the name:

* `box.area(2)` below `box = Box()` is the same, and so is an override: it changes. All of these form one offer, and no
  other rule and no model may replace the old name anywhere.
* `circle.area` of another class is another: it stays.
* `shape.area` of an unknown type stays as well, and `unjudged.py` counts and names it in the offer.

Comments and docstrings that name the symbol as code follow (`documented.py`). If `surface` exists in that scope
already, there is no offer (`clash.py`).

From a place to an offer: `candidates.py` gives a certain one the probability `SURE`, `pipeline.group` puts all of a
rename's together and nothing else with them, and `session/next_questions.py` has chosen the files.
"""

from mercury_ls.next_edit.kinds.rename.find import find as find
from mercury_ls.next_edit.kinds.rename.rule import label as label
from mercury_ls.next_edit.kinds.rename.rule import learn as learn
from mercury_ls.next_edit.suppress import never

suppress = never
