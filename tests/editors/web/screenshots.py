"""The playground in light and dark: `python -m tests.editors.web.screenshots` renews docs/screenshots/playground-*."""

import tempfile
from pathlib import Path

from tests.editors.models import SHIPPED, named
from tests.editors.tools import found
from tests.editors.web.playground import serving

OUT = Path(__file__).parents[3] / "docs/screenshots"


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(found("chromium")))
        with serving(Path(name).resolve(), MERCURY_ENGINE_MODEL=named(SHIPPED)) as server:
            for theme in ("light", "dark"):
                page = browser.new_page(color_scheme=theme, viewport={"width": 1180, "height": 720})
                page.goto(server.address)
                page.locator("#verdict", has_text="Tab takes it").wait_for()
                page.locator("#passes button").nth(2).click()
                page.mouse.move(0, 0)
                page.screenshot(path=OUT / f"playground-{theme}.png", caret="hide", animations="disabled")
        browser.close()


if __name__ == "__main__":
    main()
