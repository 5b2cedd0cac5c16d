"""What is never read, and what is never written down."""

import os
import subprocess
from pathlib import Path

import pytest

from mercury_ls.project import privacy
from mercury_ls.project.privacy import Privacy
from mercury_ls.settings.schema import PrivacySettings


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nobody's own ignore file takes part."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def check(judge: Privacy, path: str | Path, *words: str):
    """Hidden for a reason that has all these words; without words, not hidden."""
    reason = judge.why_hidden(path)
    if not words:
        assert reason is None
    else:
        assert reason is not None
        assert all(word in reason for word in words), reason


HIDDEN = """
.env .env.local prod.env .envrc server.pem a.key b.p12 c.pfx id_rsa id_rsa.pub id_ed25519_work credentials
credentials.json Credentials.yml aws-credentials my_credentials.json secrets.yaml SECRETS.PY .netrc _netrc
.npmrc .pypirc .git-credentials prod.tfvars prod.auto.tfvars.json terraform.tfstate.backup my.keystore
release.jks service-account.json my_service_account-7.json .htpasswd .pgpass .bash_history
client_secret_1.json .aws/config .ssh/known_hosts .gnupg/x .kube/config .docker/config.json .git/config
.config/gcloud/a/b .envs/prod/db Server.PEM ID_RSA .SSH/config
serviceAccountKey.json shop-firebase-adminsdk-x1-0123456789.json android/key.properties keystore.properties kubeconfig
prod.kubeconfig secrets/db.yaml deploy/secrets/prod/api.json secrets/passwords.txt token.json auth.json passwords.txt
.config/gh/hosts.yml rclone.conf pip.conf pip.ini .dockerconfigjson key.asc appsettings.Production.json
"""
SHOWN = """
main.py .env.example .env.sample .env.template .env.dist example.env environment.py CredentialsService.ts
credentials_test.go keys.py monkey.c secretary.py .ssh.py .github/workflows/ci.yml credentials/provider.py
secrets/manager.py secrets/client.go secrets/README.md src/secrets/Vault.java tokens.json token.py auth.ts
locales/en/auth.json passwords.py hosts.yml inventory/hosts.yml gradle.properties appsettings.json kubeconfig.go
microserviceAccounting.ts secrets.d/main.rs .env/lib/python/site.py config/.kube.py .gitignore .mercuryignore
.mercury.toml
"""


@pytest.mark.parametrize("name", HIDDEN.split())
def test_secrets_are_hidden_wherever_they_are(root, name):
    judge = Privacy(PrivacySettings(), [root])
    check(judge, root / name, "secret pattern")
    check(judge, root / "a/b" / name, "secret pattern")
    check(judge, root.parent / "elsewhere" / name, "secret pattern")
    check(judge, f"{root}/src/../{name}", "secret pattern")


@pytest.mark.parametrize("name", SHOWN.split())
def test_harmless_lookalike_of_a_secret_is_shown(root, name):
    check(Privacy(PrivacySettings(), [root]), root / name)


def test_buffer_without_file_is_judged_by_its_name(root, monkeypatch):
    monkeypatch.chdir(root)
    put(root / ".gitignore", "*\n")
    judge = Privacy(PrivacySettings(), [root])
    check(judge, "Untitled-1")
    check(judge, ".env", "*.env")


def test_users_add_secret_patterns_and_take_them_back(root):
    judge = Privacy(PrivacySettings(secret_patterns=("*.vault", "deploy/keys.txt", "safe/", "!*.pem")), [root])
    check(judge, root / "a.VAULT", "*.vault")
    check(judge, root / "deploy/keys.txt", "deploy/keys.txt")
    check(judge, root / "safe/deep/a.py", "safe/")
    check(judge, root / "public.pem")


def test_ignore_setting_counts_from_roots_and_from_top(root, tmp_path):
    private = tmp_path / "private"
    judge = Privacy(PrivacySettings(ignore=("/notes/", "*.sql", "!keep.sql", f"{private.as_posix()}/")), [root])
    check(judge, root / "notes/a/b.md", "privacy.ignore `/notes/`")
    check(judge, root / "src/notes/b.md")
    check(judge, root / "a.sql", "*.sql")
    check(judge, root / "keep.sql")
    check(judge, tmp_path / "other/x.sql", "*.sql")
    check(judge, private / "x.py", "privacy.ignore")


def test_gitignore_is_honoured_with_nesting_and_negation(root):
    put(root / ".gitignore", "# made\n*.log\n!keep.log\n/out/\n")
    put(root / "a/.gitignore", "!debug.log\n*.tmp\n")
    judge = Privacy(PrivacySettings(), [root])
    check(judge, root / "x.log", f"{root / '.gitignore'} line 2: `*.log`")
    check(judge, root / "keep.log")
    check(judge, root / "out/deep/x.py", "/out/")
    check(judge, root / "a/out/x.py")
    check(judge, root / "a/debug.log")
    check(judge, root / "a/other.log", "*.log")
    check(judge, root / "a/b/x.tmp", str(root / "a" / ".gitignore"))
    check(judge, root / "x.tmp")


def test_hidden_folder_has_nothing_shown_again(root):
    put(root / ".gitignore", "made/\n")
    put(root / "made/.gitignore", "!*\n")
    check(Privacy(PrivacySettings(), [root]), root / "made/x.py", "made/")


def test_mercuryignore_hides_more_and_undoes_nothing_of_git(root):
    put(root / ".gitignore", "*.log\n")
    put(root / ".mercuryignore", "!x.log\ndraft*\n!draft-3.md\n")
    judge = Privacy(PrivacySettings(), [root])
    check(judge, root / "x.log", ".gitignore")
    check(judge, root / "a/draft-1.md", ".mercuryignore line 2: `draft*`")
    check(judge, root / "draft-3.md")


def test_ignore_files_above_a_root_count_up_to_the_top_of_its_repository(tmp_path):
    top = tmp_path / "repository"
    put(tmp_path / ".gitignore", "*.py\n")
    put(top / ".git/HEAD", "ref: refs/heads/main\n")
    put(top / ".git/info/exclude", "*.scratch\n")
    put(top / ".gitignore", "*.log\n")
    judge = Privacy(PrivacySettings(), [top / "packages/one"])
    check(judge, top / "packages/one/x.log", "*.log")
    check(judge, top / "packages/one/x.scratch", "exclude line 1")
    check(judge, top / "packages/one/x.py")


def test_file_outside_roots_is_judged_by_its_own_repository(root, tmp_path):
    other = tmp_path / "other"
    put(other / ".git/HEAD")
    put(other / ".gitignore", "*.log\n")
    put(tmp_path / "loose/.gitignore", "*\n")
    judge = Privacy(PrivacySettings(), [root])
    check(judge, other / "src/x.log", "*.log")
    check(judge, other / "src/x.py")
    check(judge, tmp_path / "loose/x.py")


def test_linked_worktree_shares_exclude_file(tmp_path):
    put(tmp_path / "main/.git/info/exclude", "*.scratch\n")
    put(tmp_path / "main/.git/worktrees/other/commondir", "../..\n")
    put(tmp_path / "other/.git", f"gitdir: {tmp_path / 'main/.git/worktrees/other'}\n")
    check(Privacy(PrivacySettings(), [tmp_path / "other"]), tmp_path / "other/a.scratch", "exclude")


@pytest.mark.parametrize("configured", [True, False])
def test_user_ignore_file_counts_in_repositories(root, home, configured):
    if configured:
        put(home / ".gitconfig", "[user]\n\tname = A\n[core]\n\texcludesFile = ~/mine\n")
    put(home / ("mine" if configured else ".config/git/ignore"), "*.mine\n")
    put(root / ".git/HEAD")
    check(Privacy(PrivacySettings(), [root]), root / "x.mine", "*.mine")


def test_ignore_files_count_only_if_the_user_wants_it_secrets_always(root):
    put(root / ".gitignore", "*.log\n")
    judge = Privacy(PrivacySettings(respect_ignore_files=False), [root])
    check(judge, root / "x.log")
    check(judge, root / ".env", "secret")


def test_changes_of_ignore_files_are_noticed_at_once(root):
    judge = Privacy(PrivacySettings(), [root])
    put(root / "a/x.log")
    check(judge, root / "a/x.log")
    put(root / "a/.gitignore", "*.log\n")
    check(judge, root / "a/x.log", "*.log")
    put(root / "a/.gitignore", "*.lag\n")
    check(judge, root / "a/x.log")
    put(root / ".gitignore", "a/\n")
    check(judge, root / "a/x.log", "a/")
    (root / ".gitignore").unlink()
    check(judge, root / "a/x.log")


def test_changes_too_quick_for_the_clock_of_the_disk_are_noticed(root):
    moment = 1_000_000_000_000_000_000
    judge = Privacy(PrivacySettings(), [root], clock_ns=lambda: moment + 1_000_000_000)
    for pattern, hidden in (("*.log", True), ("*.lag", False), ("*.log", True)):
        put(root / ".gitignore", pattern)
        for path in (root / ".gitignore", root):
            os.utime(path, ns=(moment, moment))
        assert bool(judge.why_hidden(root / "x.log")) == hidden


def test_ignore_files_that_have_long_been_the_same_are_not_read_again(root, monkeypatch):
    put(root / ".gitignore", "*.log\n")
    os.utime(root / ".gitignore", (1, 1))
    os.utime(root, (1, 1))
    judge = Privacy(PrivacySettings(), [root])
    check(judge, root / "x.log", "*.log")
    monkeypatch.setattr(privacy, "read_small", None)
    check(judge, root / "x.log", "*.log")
    check(judge, root / "y.py")
    monkeypatch.undo()
    put(root / ".gitignore", "*.py\n")
    check(judge, root / "y.py", "*.py")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_unreadable_ignore_file_hides_what_it_stands_beside(root):
    os.mkfifo(root / ".gitignore")
    put(root / "a/x.py")
    judge = Privacy(PrivacySettings(), [root])
    check(judge, root / "a/x.py", "cannot be read", "not a regular file")
    (root / ".gitignore").unlink()
    put(root / ".gitignore", "#" * 300_000)
    check(judge, root / "a/x.py", "cannot be read", "larger than")


def test_links_are_judged_with_what_they_lead_to(root, tmp_path):
    put(root / ".gitignore", "*.log\n")
    secret, plain = put(tmp_path / "out/.env"), put(tmp_path / "out/plain.py")
    put(root / "x.log")
    (root / "innocent.py").symlink_to(secret)
    (root / "fine.py").symlink_to(plain)
    (root / "log.py").symlink_to(root / "x.log")
    (root / "deep").symlink_to(tmp_path / "home/.ssh")
    (root / "server.pem").symlink_to(plain)
    (root / "loop.py").symlink_to(root / "loop.py")
    judge = Privacy(PrivacySettings(), [root])
    check(judge, root / "innocent.py", "*.env", str(secret))
    check(judge, root / "fine.py")
    check(judge, root / "log.py", "*.log")
    check(judge, root / "deep/notes.py", ".ssh/")
    check(judge, root / "server.pem", "*.pem")
    check(judge, root / "loop.py")
    (root / "fine.py").unlink()
    (root / "fine.py").symlink_to(secret)
    check(judge, root / "fine.py", "*.env")


def test_files_are_judged_without_being_opened(root, monkeypatch):
    """Only ignore files and what git keeps are ever opened."""
    put(root / ".git/HEAD")
    for name in ("main.py", ".env", "a/x.log", ".ssh/id_rsa"):
        put(root / name, "text")
    put(root / ".gitignore", "*.log\n")
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(os.path.basename(path)) or real(path, *rest))
    judge = Privacy(PrivacySettings(), [root])
    for name in ("main.py", ".env", "a/x.log", ".ssh/id_rsa"):
        judge.why_hidden(root / name)
    ours = {".gitignore", ".mercuryignore"}
    assert {*opened} <= ours | {".git", ".gitconfig", "commondir", "config", "exclude", "ignore"}
    assert ".gitignore" in opened


def test_git_agrees_about_nested_ignore_files(root):
    files = [
        "a/b/x.log",
        "a/b/keep.log",
        "a/x.py",
        "out/x.py",
        "a/out/y.py",
        "a/b/c/z.tmp",
        "z.tmp",
        "sp ace/x.log",
    ]
    for name in files:
        put(root / name)
    put(root / ".gitignore", "*.log\n/out\n!sp ace/*.log\n")
    put(root / "a/.gitignore", "/*\n!/b\n!x.py\n")
    put(root / "a/b/.gitignore", "!keep.log\nc/*.tmp\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    command = ["git", "-C", str(root), "check-ignore", "--no-index", *files]
    ignored = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    judge = Privacy(PrivacySettings(), [root])
    assert {name for name in files if judge.why_hidden(root / name)} == {
        line.strip('"') for line in ignored.splitlines()
    }


def test_caches_stay_small(root, monkeypatch):
    monkeypatch.setattr(privacy, "LARGEST_CACHE", 10)
    judge = Privacy(PrivacySettings(), [root])
    for number in range(50):
        check(judge, root / f"a{number}/x.py")
    assert max(map(len, (judge._folders, judge._names, judge._verdicts, judge._tops))) <= 10


@pytest.mark.parametrize(
    "path", ["/a\0b.py", "/\ud800.py", "/a" * 3000 + ".py", "a/" * 3000 + "b.py", "/" + "a" * 5000]
)
def test_impossible_path_is_not_read(root, path):
    """A verdict and no exception: what cannot be judged is hidden."""
    reason = Privacy(PrivacySettings(), [root]).why_hidden(path)
    assert reason is None or "cannot be determined" in reason
