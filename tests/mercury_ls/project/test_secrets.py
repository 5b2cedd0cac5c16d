"""Hidden files, of every kind, never reach the engine: neither as a document nor as context."""

from contextlib import aclosing

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.project.privacy import Privacy
from mercury_ls.settings.schema import PrivacySettings, Settings
from tests.mercury_ls.session.test_session import started

CANARY = "canary_of_the_mine"
HIDDEN = {
    "git_ignored.py": ".gitignore",
    "deep/git_ignored_too.py": ".gitignore",
    "mercury_ignored.py": ".mercuryignore",
    "by_setting.py": "privacy.ignore",
    "excluded.py": ".git/info/exclude",
    ".env": "secret",
    ".env.local": "secret",
    "server.pem": "secret",
    "id_rsa": "secret",
    "credentials.json": "secret",
    ".aws/config": "secret",
    "link.py": "secret",
}


class Witness(FakeEngine):
    """Remembers everything it was told."""

    def __init__(self):
        super().__init__()
        self.told = []

    def fill(self, gap):
        self.told.append(repr(gap))
        return super().fill(gap)

    def warm(self, request):
        self.told.append(repr(request))
        return super().warm(request)


@pytest.fixture
def project(tmp_path):
    root = tmp_path.resolve()
    (root / ".git/info").mkdir(parents=True)
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/info/exclude").write_text("excluded.py\n")
    (root / ".gitignore").write_text("git_ignored*.py\n")
    (root / ".mercuryignore").write_text("mercury_ignored.py\n")
    for name in HIDDEN:
        (root / name).parent.mkdir(exist_ok=True)
        if name != "link.py":
            (root / name).write_text(f"def {CANARY}(a, b):\n    return {CANARY}(a)\n")
    (root / "link.py").symlink_to(root / ".env")
    (root / "shown.py").write_text("def canary_for_all(a, b):\n    return a\n")
    return root


async def test_hidden_files_are_told_to_nobody(project):
    engine = Witness()
    session = await started(engine, Settings(privacy=PrivacySettings(ignore=("by_setting.py",))), [project])
    for name in HIDDEN:
        path = project / name
        session.open(path.as_uri(), str(path), "python", 1, path.read_text())
        assert session.questions.unavailable(path.as_uri(), invoked=True).startswith("the file is private"), name
    while session.files.workspace.step(0.0):
        pass
    uri = (project / "work.py").as_uri()
    text = f"x = {CANARY}(1, 2)\ny = canary_for_all(1)\nz = {CANARY}("
    session.open(uri, str(project / "work.py"), "python", 1, text)
    async with aclosing(session.inline(uri, len(text), invoked=True)) as replies:
        async for _ in replies:
            pass
    await session.idle.warm()
    await session.end()
    assert engine.told
    assert not any(f"def {CANARY}" in told for told in engine.told)
    assert any("def canary_for_all" in told for told in engine.told), "what may be read is read"


@pytest.mark.parametrize(("name", "rule"), HIDDEN.items())
async def test_reason_names_rule(project, name, rule):
    settings = PrivacySettings(ignore=("by_setting.py",))
    assert rule in Privacy(settings, [project]).why_hidden(project / name)
