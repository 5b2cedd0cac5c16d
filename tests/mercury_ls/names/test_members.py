"""What is known is answered at once; what is not is learned for the next request."""

import asyncio

import pytest

from mercury_engine.api import Members
from mercury_ls.code.documents import Document
from mercury_ls.names.known import NameList
from mercury_ls.names.members import NameSources

RESPONSE = NameList(("json", "headers", "_content"))


class FakeAnalyser:
    """Knows the members of receivers by the text before the dot; `asked` are the places in order."""

    def __init__(self, known, languages=frozenset({"python"}), only_cursor=False):
        self.known = known
        self.languages = languages
        self.only_cursor = only_cursor
        self.asked = []
        self.answering = asyncio.Event()
        self.answering.set()

    async def ask(self, ask):
        await self.answering.wait()
        receiver = ask.text.split("\n")[ask.line - 1][: ask.column - 1].split()[-1]
        self.asked.append(receiver)
        return self.known.get(receiver, NameList())

    async def close(self):
        self.closed = True


def drawn(marked, version=1, language="python"):
    text, offset = marked.replace("$0", ""), marked.index("$0")
    return Document("file:///a.py", "/a.py", language, version, text).snapshot(), offset


@pytest.fixture
def analyser():
    return FakeAnalyser({"response": RESPONSE})


async def check(analyser, marked, *expected):
    """What is known first at `$0` once it has been looked at."""
    members = NameSources([analyser])
    members.look_ahead(*drawn(marked))
    await members.settled()
    assert members.about(*drawn(marked))[:1] == expected
    await members.close()


async def test_members_at_the_cursor_and_near_it(analyser):
    await check(analyser, "x = response.$0\n", Members("", ("json", "headers", "_content")))
    near = Members("response", ("json", "headers", "_content"))
    await check(analyser, "def f(response):\n    $0\n", near)
    await check(analyser, "response.json()\nx = $0\n", near)


async def test_used_members_exist_even_if_the_analyser_does_not_know_them(analyser):
    text = "response.headers\nresponse.made_up\nx = response.$0\n"
    await check(analyser, text, Members("", ("json", "headers", "_content", "made_up")))


async def test_members_are_those_that_continue_typed_text(analyser):
    await check(analyser, "x = response.he$0\n", Members("", ("headers",)))


@pytest.mark.parametrize("marked", ["x = other.$0\n", "x = $0\n"])
async def test_unknown_receiver_has_no_members(analyser, marked):
    await check(analyser, marked)


@pytest.mark.parametrize(
    ("marked", "receiver"),
    [
        ("def __init__(self):\n    self.$0\n", "self"),
        ("def __init__(self):\n    x = self.$0\n", ""),
        ("def close(self):\n    self.$0\n", ""),
    ],
)
async def test_object_may_get_any_attribute_at_the_cursor_when_it_is_made(marked, receiver):
    own = FakeAnalyser({"self": RESPONSE})
    await check(own, marked, Members(receiver, ("json", "headers", "_content")))


async def test_request_does_not_wait_and_the_next_one_knows(analyser):
    members = NameSources([analyser])
    analyser.answering.clear()
    members.want(*drawn("x = response.$0\n"))
    assert members.about(*drawn("x = response.$0\n")) == ()
    analyser.answering.set()
    await members.settled()
    assert members.about(*drawn("x = response.h$0\n", 2))[0] == Members("", ("headers",))
    await members.close()


async def test_place_is_asked_about_once_until_text_before_it_changes(analyser):
    members = NameSources([analyser])
    for marked in ("x = response.$0\n", "x = response.$0\n", "x = response.h$0\n"):
        members.want(*drawn(marked))
        await members.settled()
    assert analyser.asked == ["response"]
    members.look_ahead(*drawn("x = response.he$0\n", 2))
    await members.settled()
    assert analyser.asked == ["response"]
    members.look_ahead(*drawn("response = a\nx = response.h$0\n", 3))
    await members.settled()
    assert analyser.asked == ["response", "response"]
    await members.close()


async def test_nearby_place_is_asked_about_again_after_a_while(analyser):
    now = [0.0]
    members = NameSources([analyser], clock=lambda: now[0])
    for now[0], marked in ((0.0, "response.a\n$0"), (59.0, "response.a\n$0\n"), (61.0, "response.a\n$0\n\n")):
        members.look_ahead(*drawn(marked))
        await members.settled()
    assert analyser.asked == ["response", "response"]
    await members.close()


async def test_look_ahead_gives_way_to_the_cursor(analyser):
    members = NameSources([analyser])
    members.look_ahead(*drawn("def f(one, two):\n    $0\n"))
    members.want(*drawn("x = response.$0\n"))
    await members.settled()
    assert analyser.asked == ["response", "two", "one"]
    await members.close()


async def test_other_languages_and_forgotten_documents_are_unknown(analyser):
    members = NameSources([analyser])
    members.look_ahead(*drawn("x = response.$0\n", language="ruby"))
    assert analyser.asked == []
    members.look_ahead(*drawn("x = response.$0\n"))
    await members.settled()
    members.forget("file:///a.py")
    assert members.about(*drawn("x = response.$0\n")) == ()
    await members.close()


async def test_without_an_analyser_nothing_is_known():
    members = NameSources()
    members.want(*drawn("x = response.$0\n"))
    members.look_ahead(*drawn("x = response.$0\n"))
    await members.settled()
    assert members.about(*drawn("x = response.$0\n")) == ()
    await members.close()


async def test_answers_of_several_analysers_are_one():
    jedi = FakeAnalyser({"response": NameList(("json", "text"))})
    editor = FakeAnalyser({"response": NameList(("json", "url"), complete=False)}, None, True)
    names = NameSources([jedi, editor])
    names.look_ahead(*drawn("x = response.$0\n"))
    await names.settled()
    found = Members("", ("json", "text", "url"))
    assert names.about(*drawn("x = response.$0\n"))[0] == found
    names.look_ahead(*drawn("x = other.$0\n", language="ruby"))
    await names.settled()
    assert (jedi.asked, editor.asked) == (["response"], ["response", "other"])
    await names.close()


async def test_receiver_with_dynamic_members_is_never_known():
    own = FakeAnalyser({"response": NameList(("__getattr__", "json"))})
    await check(own, "x = response.$0\n")
