from mercury_engine.api import Edit, Proposal, Region
from mercury_engine.prompts.proposal import ProposalPrompt, diffs, proposal_prompt

EDIT = Edit("area.py", 4, "print(w)\n", "print(width)\n", above="w = 1\n", below="done()\n")
HEADER = "diff --git a/area.py b/area.py\n--- a/area.py\n+++ b/area.py\n"


def check(old: str, new: str, expected: ProposalPrompt) -> None:
    above, below = "one = 1\n", "three = 3\nfour = 4\n"
    region = Region("area.py", "python", old, above, below, first_line=8)
    assert proposal_prompt(Proposal(region, new)) == expected
    assert [*diffs((EDIT,))] == EDITS


EDITS = [f"{HEADER}@@ -4,3 +4,3 @@\n w = 1\n-print(w)\n+print(width)\n done()\n"]


def test_proposal_is_the_next_hunk_of_a_diff():
    place = f"{HEADER}@@ -9,4 +9,5 @@\n one = 1\n-two = w\n"
    check("two = w\n", "two = width\nmore()\n", ProposalPrompt(place, "+two = width\n+more()\n", " three = 3\n"))


def test_proposal_may_only_remove_or_only_add():
    place = f"{HEADER}@@ -9,4 +9,3 @@\n one = 1\n-two = w\n"
    check("two = w\n", "", ProposalPrompt(place, "", " three = 3\n"))
    place = f"{HEADER}@@ -9,3 +9,4 @@\n one = 1\n"
    check("", "two = 2\n", ProposalPrompt(place, "+two = 2\n", " three = 3\n"))
