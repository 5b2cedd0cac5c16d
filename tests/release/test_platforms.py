"""The table of platforms says what was resolved, and nothing else."""

import pytest

from release.platforms import PAGE, PLATFORMS, Platform, glibc, page, required, rows

MAC = Platform("macOS 14", "Intel", "", ("macosx_14_0_x86_64",))


def wheels(platform, python, wanted):
    """Wheels of everything but triton, and from 3.14 none of OpenVINO."""
    if any(requirement.startswith("triton") for requirement in wanted):
        return []
    if wanted == required()["local"]:
        return [] if python == "3.14" else ["openvino-2025.4.1"]
    return ["msgspec-0.22.0"]


def test_pythons_that_get_the_same_share_a_line():
    assert rows(wheels, MAC) == [
        "| macOS 14 | Intel |  | 3.11, 3.12, 3.13 | OpenVINO 2025.4.1 | no | yes |",
        "| macOS 14 | Intel |  | 3.14 | no | no | yes |",
    ]


def test_requirements_are_asked_for_once():
    wanted = required()
    assert [name.partition(">")[0] for name in wanted["local"]] == ["openvino"]
    assert [name.partition(">")[0] for name in wanted["gpu"]] == ["torch", "triton"]
    assert len(wanted["servers"]) > 20
    assert not any(";" in requirement for column in wanted.values() for requirement in column)


def test_system_takes_wheels_of_all_older_ones():
    assert glibc(17, "x86_64")[0] == "manylinux_2_17_x86_64"
    assert set(glibc(17, "x86_64")) < set(glibc(28, "x86_64"))


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.tags[0])
def test_page_has_line_for_platform_and_its_day(platform):
    text = PAGE.read_text(encoding="utf-8")
    assert f"| {' | '.join(platform[:3])} |" in text
    assert "asked on 2" in text


def test_page_is_up_to_date():
    """Its lines depend on the index; its words do not."""
    written, now = (t.split("|\n\n") for t in (PAGE.read_text(encoding="utf-8"), page(wheels, "")))
    assert written[-1] == now[-1]
