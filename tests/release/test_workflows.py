"""GitHub's workflows run this repository's commands, by pinned actions, with no more rights than they need."""

import re

import pytest

from release.version import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in WORKFLOWS}
USES = re.compile(r"uses: (\S+)@(\S+)(.*)")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_actions_are_pinned_by_hash_and_tell_their_version(text):
    uses = USES.findall(text)
    assert uses
    for action, revision, version in uses:
        assert re.fullmatch(r"[0-9a-f]{40}", revision), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", version), action


def test_action_is_the_same_everywhere():
    pins = {use for text in TEXTS.values() for use in USES.findall(text)}
    assert len({action for action, _, _ in pins}) == len(pins)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_rights_are_given_to_single_jobs(text):
    assert "\npermissions: {}\n" in text
    jobs = text.partition("\njobs:\n")[2]
    assert jobs.count("    permissions:") == len(re.findall(r"^  \w+:$", jobs, re.MULTILINE))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_workflows_call_targets_that_exist(text):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = {word for words in re.findall(r"run: make (.*)", text) for word in words.split() if "=" not in word}
    assert called
    assert called <= targets


def test_secrets_and_variables_are_documented():
    page = (ROOT / "docs/RELEASING.md").read_text(encoding="utf-8")
    names = {name for text in TEXTS.values() for name in re.findall(r"\b(?:secrets|vars)\.(\w+)", text)}
    assert names
    assert [name for name in names if f"`{name}`" not in page] == []
