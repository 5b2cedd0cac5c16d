import re

import pytest

from tests.editors.web.playground import serving

pytestmark = pytest.mark.editor

COPIED = "def area(width, height):\n    return width * height\n\ndef area(width, height):\n    "
"""The fake engine copies what stands behind the same words."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("web")) as running:
        yield running


@pytest.fixture
def page(browser, server):
    """Opened with the token; nothing may go wrong in it, and nothing may be asked of anybody else."""
    page, wrong = browser.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda request: f":{server.port}/" in request.url or wrong.append(request.url))
    page.goto(server.address)
    page.get_by_role("tab", name="Draft").wait_for()
    yield page
    page.close()
    assert wrong == []


def written(page, text):
    """By keys alone: the cursor is in the editor when the page opens."""
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def said(page, pattern):
    page.locator("#verdict", has_text=re.compile(pattern)).wait_for()


def value(page):
    return page.locator("#text").input_value()


def test_typed_text_is_drafted_pass_by_pass_and_taken_with_tab(page):
    written(page, COPIED)
    said(page, "Tab takes it")
    passes = page.locator("#passes button")
    assert passes.count() > 1
    assert passes.last.get_attribute("aria-current") == "true"
    page.keyboard.press("Alt+ArrowLeft")
    assert passes.last.get_attribute("aria-current") == "false"
    assert page.locator("#view .slot").count() > 1
    page.keyboard.press("Tab")
    assert value(page) == COPIED + "return width * height"


def test_masked_and_settled_slots_look_different(page):
    page.locator("#effort").select_option("high")
    page.locator("#text").focus()
    written(page, COPIED)
    said(page, "Tab takes it")
    page.locator("#passes button").first.click()
    assert page.locator("#view .masked").count() > 0
    page.locator("#passes button").last.click()
    assert page.locator("#view .masked").count() == 0


def test_escape_drops_it_and_tab_moves_on(page):
    written(page, COPIED)
    said(page, "Tab takes it")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert value(page) == COPIED
    assert page.evaluate("document.activeElement.id") != "text"


def test_why_there_is_nothing_is_said(page):
    written(page, "# nothing was written before: ")
    said(page, "Nothing is suggested: ")


def test_offsets_count_characters_as_the_server_does(page):
    text = 'mark = "𝒳𝒴"\n' + COPIED
    written(page, text)
    said(page, "Tab takes it")
    page.keyboard.press("Tab")
    assert value(page) == text + "return width * height"


def test_model_input_is_shown(page):
    page.locator("summary", has_text="Another open file").click()
    page.locator("#other").fill("def volume(width, height, depth):\n    return area(width, height) * depth\n")
    page.locator("#text").focus()
    written(page, COPIED)
    said(page, "Tab takes it")
    page.locator("#context summary").click()
    shown = page.locator("#context").inner_text()
    assert "█" in shown
    assert "related code of units.py" in shown


def test_statistics_are_this_machines(page):
    written(page, COPIED)
    said(page, "Tab takes it")
    page.get_by_role("tab", name="Draft").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#days table").wait_for()
    assert "python" in page.locator("#days").inner_text()
    assert "on this machine only" in page.locator("#where").inner_text()
    assert "p50" in page.locator("#latency").inner_text()


def test_token_leaves_the_address_and_is_asked_for_without(page, browser, server):
    assert "token" not in page.url
    other = browser.new_page()
    other.goto(f"http://127.0.0.1:{server.port}/")
    other.locator("#token").fill(server.token)
    other.keyboard.press("Enter")
    other.locator("#model", has_text="copies").wait_for()
    assert other.locator("#login").is_hidden()
    other.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_until_it_is_switched(browser, server, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto(server.address)
    background = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(background)
    page.locator("#theme").click()
    turned = page.evaluate(background)
    assert turned != first
    page.reload()
    page.locator("#model", has_text="copies").wait_for()
    assert page.evaluate(background) == turned
    assert (first == "rgb(20, 23, 26)") == (scheme == "dark")
    page.close()


def test_accepted_text_can_be_undone_and_is_counted(page):
    written(page, COPIED)
    said(page, "Tab takes it")
    with page.expect_response("**/feedback") as told:
        page.keyboard.press("Tab")
    assert told.value.json() == {"counted": True}
    page.keyboard.press("Control+Z")
    assert value(page) == COPIED


def test_suggestion_is_not_taken_where_the_cursor_has_moved(page):
    written(page, COPIED)
    said(page, "Tab takes it")
    page.keyboard.press("ArrowUp")
    said(page, "The cursor has moved")


def test_wrong_token_is_reported_and_keyboard_stays_in_place(browser, server):
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/#token=wrong")
    page.locator("#refused", has_text="not the server's token").wait_for()
    page.keyboard.insert_text(server.token)
    page.keyboard.press("Enter")
    page.locator("#model", has_text="copies").wait_for()
    assert page.evaluate("document.activeElement.id") == "text"
    page.close()


def test_lost_server_is_reported(browser, server):
    page = browser.new_page()
    page.goto(server.address)
    said(page, "Tab takes it|Nothing is suggested")
    page.route("**/playground/**", lambda route: route.abort("connectionrefused"))
    page.locator("#text").focus()
    written(page, COPIED)
    said(page, "The server does not answer")
    page.get_by_role("tab", name="Statistics").click()
    page.locator("#where", has_text="The server does not answer").wait_for()
    page.close()


def test_narrow_window_scrolls_in_one_direction(browser, server):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(server.address)
    said(page, "Tab takes it|Nothing is suggested")
    page.get_by_role("tab", name="Statistics").click()
    page.locator("#latency dt").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()
