"""The user's own folders for configuration, state, data and logs, where the system has them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from platformdirs import PlatformDirs


def folders() -> "PlatformDirs":
    from platformdirs import PlatformDirs

    return PlatformDirs("mercury-ls", appauthor=False)
