"""What an installation takes is told by package."""

from pathlib import Path

from release.size import LEAST, MB, installed, table

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"


def pip(command, folder, more=None):
    """Installs two packages, one of which lists a file that is not there."""
    target = Path(command[command.index("--target") + 1])
    for name, size in {"large": 300, "small": 20}.items():
        about = target / f"{name}-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(METADATA.format(name=name))
        (about / "RECORD").write_text(f"{name}.py,,\ngone.py,,\n")
        (target / f"{name}.py").write_bytes(bytes(size))
    return ""


def test_package_takes_what_its_files_take(tmp_path):
    assert installed(pip, tmp_path / "plain") == {"large": 300, "small": 20}


def test_large_packages_have_a_line_and_small_ones_share_one():
    rows = table({"b": LEAST, "a": 3 * LEAST, "c": 1 * MB, "d": 2 * MB}, 30 * MB).splitlines()[2:]
    assert rows == [
        "| a | 15 |",
        "| b | 5 |",
        "| 2 others | 3 |",
        "| all, as uv installs it | 23 |",
        "| all, as pip installs it, with bytecode | 30 |",
    ]
