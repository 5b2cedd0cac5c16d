"""Remote engines in front of imitated servers."""

import json
from contextlib import contextmanager, suppress
from itertools import pairwise
from threading import Event

import pytest
from msgspec.structs import replace

from bench.harness.servers import SECONDS, FakeServer, document, free_port, lines_of, serving, streamed
from mercury_engine.api import Edit, EngineError, Gap, Region, Regions, Snippet
from mercury_engine.prompts.cut import cut
from mercury_engine.record import ModelRecord
from mercury_engine.remote import asking
from mercury_engine.remote.engine import RemoteEngine, open_remote
from mercury_engine.remote.heard import StreamedText
from mercury_engine.remote.http import HttpClient

BEFORE, AFTER = "def area(w, h):\n    return ", "\n\nprint(area(2, 3))\n"


def gap(before=BEFORE, after=AFTER, **fields) -> Gap:
    place = {"path": "shapes.py", "language": "python", "before": before, "after": after}
    return Gap(session="s", **place, most_tokens=32, **fields)


def regions(text=BEFORE + "w * h" + AFTER, **fields) -> Regions:
    return Regions(session="s", regions=(Region("shapes.py", "python", text),), cursor=len(BEFORE), **fields)


def record(server: FakeServer | str, protocol="llama", prompt="qwen", **fields) -> ModelRecord:
    address = server if isinstance(server, str) else server.address
    return ModelRecord(name="theirs", kind="server", prompt=prompt, protocol=protocol, address=address, **fields)


class Clock:
    """Stands still until it is told to go."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def engine_for(made: ModelRecord, *, clock=None, key="", **options):
    client = HttpClient(made.address, {"Authorization": f"Bearer {key}"} if key else {}, **options)
    engine = RemoteEngine(made, client, clock=clock or Clock())
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def against(answers, protocol="llama", prompt="qwen", **fields):
    """A server and the engine that asks it."""
    with serving(answers) as server, engine_for(record(server, protocol, prompt, **fields)) as engine:
        yield server, engine


def answer(engine, asked=None):
    *_, last = engine.fill(asked or gap())
    assert last.final
    return last


def rewritten(engine, asked=None):
    *_, last = engine.rewrite(asked or regions())
    assert last.final
    return last.regions[0]


def refusal(engine, asked=None) -> str:
    with pytest.raises(EngineError) as raised:
        list(engine.fill(asked or gap()))
    return str(raised.value)


def llama(*texts, end="eos", prob=-0.01):
    messages = [{"content": each, "stop": False, "completion_probabilities": [{"logprob": prob}]} for each in texts]
    return streamed([*messages, {"content": "", "stop": True, "stop_type": end}], done=False)


OPENAI = [{"choices": [{"index": 0, "text": text, "finish_reason": None}]} for text in (" w", " * h")]
LAST = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
SHAPES = {
    "llama": ("/completion", llama(" w", " * h")),
    "ollama": (
        "/api/generate",
        lines_of(
            [
                {"model": "q", "response": " w", "done": False},
                {"model": "q", "response": " * h", "done": False},
                {"model": "q", "response": "", "done": True, "done_reason": "stop", "eval_count": 3},
            ]
        ),
    ),
    "openai": ("/v1/completions", streamed([*OPENAI, LAST])),
}
GAPS = {
    "llama-infill": ("/infill", llama("w", " * h")),
    "mistral": (
        "/v1/fim/completions",
        streamed(
            [
                {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {"content": "w * h"}, "finish_reason": "stop"}], "usage": {}},
            ]
        ),
    ),
    "deepseek": (
        "/beta/completions",
        streamed([{"choices": [{"text": "w * h", "index": 0, "finish_reason": "stop", "logprobs": None}]}]),
    ),
    "inception": (
        "/v1/fim/completions",
        document({"object": "text_completion", "choices": [{"index": 0, "text": "w * h", "finish_reason": "stop"}]}),
    ),
    "tabby": ("/v1/completions", document({"id": "cmpl-1", "choices": [{"index": 0, "text": "w * h"}]})),
}


@pytest.mark.parametrize("protocol", SHAPES)
def test_raw_prompts(protocol):
    path, shape = SHAPES[protocol]
    with against({path: shape}, protocol) as (server, engine):
        last = answer(engine)
        assert last.text == "w * h"
        assert last.complete
        (body,) = server.bodies
        assert body["prompt"].startswith("<|fim_prefix|>") or "<|fim_prefix|>def area" in body["prompt"]
        assert body["prompt"].endswith("<|fim_middle|>")
        assert "return<|fim_suffix|>\n\nprint" in body["prompt"]


@pytest.mark.parametrize("protocol", GAPS)
def test_prompts_that_the_server_puts_together(protocol):
    path, shape = GAPS[protocol]
    with against({path: shape}, protocol, "") as (server, engine):
        assert answer(engine).text == "w * h"
        assert "def area" in json.dumps(server.bodies[0])
        assert "fim" not in json.dumps(server.bodies[0])


@pytest.mark.parametrize(("seconds", "lines"), [(0.0, 100), (0.9, 12)])
def test_fast_reading_server_reads_more_of_what_follows(seconds, lines):
    clock, after = Clock(), "\n" + "".join(f"line{number}\n" for number in range(100))

    def later(line, asked):
        clock.now += seconds
        return llama(" w")(line, asked)

    with (
        serving({"/completion": later}) as server,
        engine_for(record(server, context=32_768), clock=clock) as engine,
    ):
        for _ in range(2):
            list(engine.fill(gap(after=after)))
        assert [body["prompt"].count("line") for body in server.bodies] == [12, lines]


@pytest.mark.parametrize(
    ("address", "key", "costs"),
    [
        ("https://api.example.com", "env:K", True),
        ("https://api.example.com", "", False),
        ("https://192.168.1.20:8080", "env:K", False),
        ("https://workstation.lan:8080", "env:K", False),
        ("http://127.0.0.1:8080", "env:K", False),
    ],
)
def test_answers_may_cost_money_where_a_key_is_shown_to_somebody_else(address, key, costs):
    with engine_for(record(address, key=key)) as engine:
        assert engine.info().metered is costs


def test_drafts_grow_and_steps_without_news_repeat_the_last_one():
    with against({"/completion": llama(" w", " *", " h")}) as (_server, engine):
        drafts = list(engine.fill(gap()))
        texts = list(dict.fromkeys(draft.text for draft in drafts))
        assert all("w * h".startswith(text) for text in texts)
        for one, other in pairwise(drafts[:-1]):
            assert one is other or one.step < other.step


def test_complete_answer_is_not_waited_for():
    def on_and_on(line, asked):
        line.head()
        line.chunk('data: {"content": " w * h\\nprint(", "stop": false}\n\n')
        server.hold(line)

    with against({"/completion": on_and_on}) as (server, engine):
        assert answer(engine).text == "w * h"
        assert server.left.wait(5)


def test_closing_reaches_the_server():
    with against({"/completion": lambda line, asked: server.hold(line)}) as (server, engine):
        drafts = engine.fill(gap())
        while not server.asked:
            next(drafts)
        drafts.close()
        assert server.left.wait(5)


def test_several_requests_at_once():
    with against({"/completion": llama(" w", " * h")}) as (_server, engine):
        running = [engine.fill(gap()) for _ in range(4)]
        last = {}
        while len(last) < 4:
            for number, drafts in enumerate(running):
                if number not in last and (draft := next(drafts)).final:
                    last[number] = draft.text
        assert list(last.values()) == ["w * h"] * 4


def test_begun_word_is_taken_back_and_must_come_again():
    answers = {"/completion": llama(" wid", "th * h")}
    with against(answers) as (server, engine):
        assert answer(engine, gap(BEFORE + "wi")).text == "dth * h"
        assert "return<|fim_suffix|>" in server.bodies[0]["prompt"]


def test_begun_word_that_does_not_come_again_is_asked_from_the_cursor():
    def unwilling(line, asked):
        llama("dth" if "return wi<|fim_suffix|>" in asked.json["prompt"] else " h")(line, asked)

    with against({"/completion": unwilling}) as (server, engine):
        assert answer(engine, gap(BEFORE + "wi")).text == "dth"
        assert len(server.asked) == 2


def test_p_accept_follows_the_log_probabilities():
    for prob, sure in ((-0.01, True), (-1.0, False)):
        with against({"/completion": llama(" w", " * h", prob=prob)}) as (_, engine):
            filled = answer(engine)
            assert (filled.p_accept > engine.info().bar) == sure
            assert len(filled.confidence) == 2
            start = answer(engine, gap(bar=0.3))
            assert start.text == ("w * h" if sure else "w")
    with against(dict([SHAPES["ollama"]]), "ollama") as (_server, engine):
        assert 0.25 < answer(engine).p_accept < 0.5
        assert not engine.info().calibrated


def test_sent_request_is_reported():
    edits = (Edit("shapes.py", 0, "def area(w):\n    pass", "def area(w, h):\n    pass"),)
    snippets = (Snippet("units.py", "INCH = 2.54\n"),)
    with against({"/completion": llama(" w")}) as (server, engine):
        sent = answer(engine, gap(snippets=snippets, edits=edits)).sent
        size = len(server.bodies[0]["prompt"])
        assert sent == f"{size:,} characters of shapes.py, 1 snippet and 1 edit to {server.address}"


def test_code_with_special_tokens_is_not_sent():
    with against({"/completion": llama("x")}) as (server, engine):
        for text in ("STOP = '<|fim_middle|>'\n", "EOS = '<|endoftext|>'\n"):
            assert text.split("'")[1] in refusal(engine, gap(text + BEFORE))
        assert server.asked == []
        assert engine.info().notes == ()


def test_answer_broken_off_for_another_is_not_whole():
    with against({"/v1/completions": streamed(OPENAI)}, "openai") as (_, engine):
        filled = answer(engine)
        assert (filled.text, filled.complete) == ("w * h", False)


def test_empty_answer_is_unlikely():
    with against({"/completion": llama()}) as (_server, engine):
        filled = answer(engine, gap("x = 1"))
        assert (filled.text, filled.p_accept) == ("", 0.0)


def test_unsupported_questions_are_refused():
    with against({}) as (_server, engine):
        assert (engine.info().fills, engine.info().rewrites) == (True, False)
        with pytest.raises(EngineError, match=r"theirs does not propose next edits.*`mercury-ls model list`"):
            engine.rewrite(regions())
    with against({}, "openai", "zeta-2") as (_server, engine):
        two = Regions(session="s", regions=(Region("a.py", "python", "x"),) * 2, cursor=0)
        with pytest.raises(EngineError, match="one window at a time"):
            engine.rewrite(two)


def test_next_edit_model_behind_server_rewrites_regions():
    new = "def area(w, h):\n    return w * h  # square metres\n\nprint(area(2, 3))\n"
    shape = streamed([{"choices": [{"text": new, "finish_reason": "stop"}]}])
    with against({"/v1/completions": shape}, "openai", "zeta-2") as (server, engine):
        assert (engine.info().fills, engine.info().rewrites) == (False, True)
        last = rewritten(engine)
        assert last.text == new
        assert "<[fim-suffix]>" in server.bodies[0]["prompt"]


def test_inceptions_next_edits_are_a_chat():
    said = f"```python\n{BEFORE}h * w{AFTER}```"
    shape = document({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": said}}]})
    fills = {"/v1/fim/completions": GAPS["inception"][1]}
    with against({"/v1/edit/completions": shape, **fills}, "inception", "", model="mercury-edit-2") as (server, engine):
        assert (engine.info().fills, engine.info().rewrites) == (True, True)
        assert answer(engine).text == "w * h"
        server.asked.clear()
        assert rewritten(engine).text == BEFORE + "h * w" + AFTER
        (message,) = server.bodies[0]["messages"]
        assert "<|code_to_edit|>\ndef area(w, h):" in message["content"]


def test_next_edits_of_a_server_that_only_chats():
    said = f"Here:\n\n```python\n{BEFORE}h * w{AFTER}```"
    shape = streamed(
        [{"choices": [{"delta": {"content": said}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    )
    with against({"/v1/chat/completions": shape}, "chat", "") as (server, engine):
        assert (engine.info().fills, engine.info().rewrites) == (False, True)
        assert rewritten(engine).text == BEFORE + "h * w" + AFTER
        (message,) = server.bodies[0]["messages"]
        assert "<|edit_this|>\ndef area(w, h):" in message["content"]


def test_secrets_do_not_leave_the_machine():
    secret = 'API_KEY = "sk-1234567890abcdef1234"\n'
    for address, leaves in (("http://127.0.0.1:1", False), ("https://models.example.org", True)):
        with engine_for(record(address)) as engine:
            attempt = next(engine._ahead(gap(secret + BEFORE)))
            assert ("sk-1234" in attempt.ask.prompt) != leaves
            assert attempt.show(StreamedText()).text == ""


# What goes wrong


def test_server_that_comes_up_later_is_found():
    clock, port = Clock(), free_port()
    with engine_for(record(f"http://127.0.0.1:{port}"), clock=clock) as engine:
        said = refusal(engine)
        assert said.startswith(f"http://127.0.0.1:{port} does not answer (Connection refused): start the server, or")
        assert "`mercury-ls model use auto`" in said
        assert engine.info().notes == (said,)
        assert refusal(engine) == f"{said}; asked again in 1 s"
        clock.now += 1.1
        assert refusal(engine) == said
        assert refusal(engine).endswith("asked again in 2 s")
        with serving({"/completion": llama(" w")}, port=port):
            clock.now += 2.1
            assert answer(engine).text == "w"
            assert engine.info().notes == ()


@pytest.mark.parametrize(
    ("status", "message", "headers", "says"),
    [
        (400, "prompt too long", {}, "refuses the request (400): prompt too long"),
        (401, "no", {}, "refuses the key in env:K (401)"),
        (403, "no", {}, "refuses the key in env:K (403)"),
        (404, "nope", {}, "has no /completion for qwen (404): nope; check the address"),
        (429, "slow down", {"Retry-After": "30"}, "gets too many requests (429): slow down"),
        (500, "oops", {}, "failed (500): oops; see the server's log"),
        (501, "no FIM", {}, "cannot fill gaps with its model (501): no FIM"),
        (503, "Loading model", {}, "failed (503): Loading model"),
        (
            302,
            "",
            {"Location": "https://elsewhere.example/"},
            "redirects to https://elsewhere.example/, where neither code nor keys are sent",
        ),
    ],
)
def test_refusals_name_address_status_and_remedy(status, message, headers, says):
    refuses = document({"error": {"message": message}}, status, **headers)
    with serving({"/completion": refuses}) as server:
        with engine_for(record(server, key="env:K", model="qwen"), key="k3y") as engine:
            said = refusal(engine)
            assert said.startswith(f"{server.address} ")
            assert says in said
            assert (engine.info().notes == ()) == (status == 400)
            if headers.get("Retry-After"):
                assert refusal(engine).endswith("asked again in 30 s")
        tries = [each for each in server.asked if each.path == "/completion"]
        assert len(tries) == 1 + (status in (400, 500)), "without what it may not know"


@pytest.mark.parametrize(
    "refusal",
    [
        document({"detail": "extra fields not permitted"}, 422),
        document({"error": "no logprobs"}, 500),
        streamed([], done=False),
    ],
)
def test_picky_server_is_asked_plainly(refusal):
    def picky(line, asked):
        (refusal if "logprobs" in asked.json else SHAPES["openai"][1])(line, asked)

    with against({"/v1/completions": picky}, "openai") as (server, engine):
        for _ in range(2):
            assert answer(engine).text == "w * h"
        streamed_ones = [each for each in server.bodies if "stream" in each]
        assert ["logprobs" in each for each in streamed_ones] == [True, False, False]
        assert engine.info().notes == ()


LONG = "".join(f"value_{number} = compute({number})\n" for number in range(400))
TOO_LONG = {"error": {"message": "This model's maximum context length is 1024 tokens, however you requested 2034"}}


@pytest.mark.parametrize("tells_streams", [True, False])
def test_smaller_context_than_known_is_learned(tells_streams):
    def small(line, asked):
        if len(asked.json["prompt"]) < 3 * 1024:
            SHAPES["openai"][1](line, asked)
        elif tells_streams or "stream" not in asked.json:
            document(TOO_LONG, 400)(line, asked)
        else:
            streamed([], done=False)(line, asked)

    with against({"/v1/completions": small}, "openai") as (server, engine):
        assert answer(engine, gap(LONG + BEFORE)).text == "w * h"
        asked = len(server.asked)
        assert answer(engine, gap(LONG + BEFORE)).text == "w * h"
        assert len(server.asked) == asked + 1
        assert "logprobs" in server.bodies[-1]
        assert engine.info().context_tokens == 1024


def test_missing_key_is_reported():
    with against({"/completion": document({"error": "Unauthorized"}, 401)}) as (server, engine):
        assert f"`mercury-ls model add {server.address} --key env:NAME`" in refusal(engine)


def test_server_that_repeats_key_is_not_quoted():
    key = "sk-1234567890abcdef1234"
    for shape in (
        document({"error": {"message": f"Incorrect API key provided: {key}"}}, 401),
        streamed([{"error": f"bad {key}"}]),
    ):
        with serving({"/completion": shape}) as server, engine_for(record(server, key="env:K"), key=key) as engine:
            assert key not in refusal(engine)
            assert key not in repr(engine.info())
            assert server.asked[-1].headers["authorization"] == f"Bearer {key}"


def dies(line, asked):
    line.head()
    line.chunk('data: {"content": " w", "stop": false}\n\n')
    raise ConnectionAbortedError


def ends_early(line, asked):
    line.head()
    line.chunk('data: {"content": " w", "stop": false}\n\n')
    line.end()


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        (dies, "broke off: the connection was closed in the middle of an answer"),
        (ends_early, "broke off: the connection was closed in the middle of an answer"),
        (document({"status": "ok"}), "not with a completion (nothing in it is a completion)"),
        (lambda line, asked: line.whole("<html>hello</html>", kind="text/html"), "'<html>hello</html>' is not JSON"),
        (lambda line, asked: line.whole("x" * (5 << 20)), "larger than 4 MiB"),
        (streamed([{"error": {"message": "the slot is gone"}}]), "gave up: the slot is gone"),
        (streamed([{"error": {"message": ["the slot"]}}]), "gave up: an error without a message"),
        (lambda line, asked: line.whole('{"error":' + "[" * 9999), "is not JSON"),
        (lambda line, asked: line.whole("[" * 9999, 503), "failed (503): [["),
        (lambda line, asked: line.whole('{"error":{"message":[1]}}', 503), "failed (503): {"),
    ],
)
def test_answers_that_are_none(shape, says):
    with against({"/completion": shape}) as (_server, engine):
        assert says in refusal(engine)
        assert says in engine.info().notes[0]


def test_document_whose_end_comes_late_is_read():
    sent, go_on = Event(), Event()

    def answered(line, asked):
        line.head(kind="application/json")
        line.chunk('{"content": " w * h", "stop": true, "stop_type": "eos"}')
        sent.set()
        assert go_on.wait(SECONDS)
        line.end()

    with against({"/completion": answered}) as (server, engine):
        drafts = engine.fill(gap())
        next(drafts)
        assert sent.wait(SECONDS)
        for _ in range(3):
            next(drafts)
        go_on.set()
        *_, last = drafts
        assert last.text == "w * h"
        assert len(server.asked) == 1


def endless(text):
    """One token after the other, whatever was asked for."""

    def answer(line, asked):
        line.head()
        event = f"data: {json.dumps({'content': text, 'stop': False})}\n\n"
        with suppress(OSError):
            while True:
                line.chunk(event * (60_000 // len(event)))

    return answer


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("text", ["x", "((((", "x " * 500, "y" * 9999, "\n", "    x = 1\n", "", "ab\u00e9\n\n\n"])
def test_answer_without_end_is_not_listened_to(monkeypatch, block, text):
    shown = []
    monkeypatch.setattr(asking, "cut", lambda *texts, **how: shown.append(len(texts[1])) or cut(*texts, **how))
    with against({"/completion": endless(text)}) as (_server, engine):
        if text:
            answer(engine, gap(block=block))
            assert max(shown) <= (32 + 8) * 64
        else:
            assert "it goes on and on without any text" in refusal(engine, gap(block=block))


def test_list_of_models_without_end_is_given_up():
    dribble = lambda line, asked: (line.head(), line.chunk("{"), line.is_left())  # noqa: E731
    clock = Clock()
    with serving({"/v1/models": dribble}) as server, engine_for(record(server, model="m"), clock=clock) as engine:
        drafts = engine.fill(gap())
        next(drafts)
        clock.now += 121
        with pytest.raises(EngineError, match="is too slow"):
            next(drafts)
        assert "asked again in" in refusal(engine)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", 30),
        ("999999999", 3600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        *((value, 1) for value in ("1e300", "inf", "nan", "-5", "9" * 5000, "Fri, 99 Foo 0 99:99:99 +9999", "", "now")),
    ],
)
def test_retry_after_is_bounded(value, seconds):
    with against({"/completion": document({}, 429, Retry_After=value)}) as (_server, engine):
        refusal(engine)
        assert refusal(engine).endswith(f"asked again in {seconds} s")


def too_late(drafts):
    with pytest.raises(EngineError, match=r"slower than engine\.deadline_ms allows"):
        next(drafts)


def test_slow_server_is_given_up_at_the_deadline():
    clock = Clock()

    def slow(line, asked):
        server.hold(line)

    with serving({"/completion": slow}) as server, engine_for(record(server), clock=clock) as engine:
        for ends in (lambda drafts: drafts.close(), too_late):
            assert engine.info().notes == ()
            drafts = engine.fill(gap(deadline_ms=500))
            next(drafts)
            clock.now += 0.46
            ends(drafts)
        assert "slower than engine.deadline_ms allows" in engine.info().notes[0]
        server.answers["/completion"] = llama(" w")
        answer(engine)
        assert engine.info().notes == ()


FUNCTIONS = "def area(w, h):\n    return w * h\n" + "".join(f"\n\ndef f{n}():\n    return {n}\n" for n in range(8))
CHANGED = FUNCTIONS.replace("w * h", "abs(w * h)")


def holding(server: FakeServer, text: str):
    """Says so much, and then nothing more; and an event that is set once it has said that."""
    has_said = Event()

    def answer(line, asked):
        line.head()
        line.chunk(f"data: {json.dumps({'choices': [{'text': text}]})}\n\n")
        has_said.set()
        server.hold(line)

    return answer, has_said


def test_rewrite_that_is_back_in_old_text_is_hung_up_on():
    with serving({}) as server, engine_for(record(server, "openai", "zeta-2")) as engine:
        server.answers["/v1/completions"], _ = holding(server, "".join(CHANGED.splitlines(keepends=True)[:10]))
        last = rewritten(engine, regions(FUNCTIONS))
        assert (last.text, last.complete) == (CHANGED, True)
        assert server.left.wait(SECONDS)


@pytest.mark.parametrize(("lines", "is_shown"), [(6, True), (2, False)])
def test_rewrite_streaming_past_its_deadline_is_reported_as_slow(lines, is_shown):
    """Whether it is back in the old text at all decides; that the server is slow is told in any case."""
    clock = Clock()
    with serving({}) as server, engine_for(record(server, "openai", "zeta-2"), clock=clock) as engine:
        for _ in range(2):
            written = "".join(CHANGED.splitlines(keepends=True)[:lines])
            server.answers["/v1/completions"], has_said = holding(server, written)
            drafts = engine.rewrite(regions(FUNCTIONS, deadline_ms=500))
            next(drafts)
            assert has_said.wait(SECONDS)
            for _ in range(5):
                next(drafts)
            clock.now += 0.46
            if is_shown:
                assert [*drafts][-1].regions[0].text == CHANGED
            else:
                with pytest.raises(EngineError, match=r"first text after 0\.0 s"):
                    next(drafts)
        assert "slower than engine.deadline_ms allows (first text after" in engine.info().notes[0]


def test_wrong_model_is_named_with_existing_ones():
    has = document({"data": [{"id": "llama-3"}, {"id": "phi-4"}]})
    with serving({"/v1/models": has, "/completion": llama(" w")}) as server:
        with engine_for(record(server, model="qwen2.5-coder-1.5b")) as engine:
            assert "has no model 'qwen2.5-coder-1.5b'; it has llama-3, phi-4" in refusal(engine)
        with engine_for(record(server, model="phi-4")) as engine:
            assert answer(engine).text == "w"
            answer(engine)
        assert [each.path for each in server.asked].count("/v1/models") == 2


def test_server_with_another_model_of_the_same_kind_will_do():
    has = document({"data": [{"id": "Qwen2.5-Coder-7B-Q8_0.gguf"}]})
    with against({"/v1/models": has, "/completion": llama(" w")}, model="qwen2.5-coder-1.5b") as (_server, engine):
        assert answer(engine).text == "w"


def test_server_with_several_models_goes_by_their_names():
    """llama-server as a router."""
    has = document({"data": [{"id": name, "status": {"value": "unloaded"}} for name in ("qwen-a", "llama-3")]})
    with serving({"/v1/models": has, "/completion": llama(" w")}) as server:
        with engine_for(record(server, model="qwen2.5-coder-1.5b")) as engine:
            assert "has no model 'qwen2.5-coder-1.5b'; it has qwen-a, llama-3" in refusal(engine)
        with engine_for(record(server, model="qwen-a")) as engine:
            assert answer(engine).text == "w"
            assert server.bodies[-1]["model"] == "qwen-a"


def test_after_a_failure_the_model_is_looked_for_again():
    clock, names = Clock(), ["qwen-a"]
    answers = {
        "/v1/models": lambda line, asked: document({"data": [{"id": name} for name in names]})(line, asked),
        "/completion": llama(" w"),
    }
    with serving(answers) as server, engine_for(record(server, model="qwen-a"), clock=clock) as engine:
        answer(engine)
        server.answers["/completion"] = dies
        refusal(engine)
        names[:] = ["other"]
        clock.now += 2
        assert "has no model 'qwen-a'; it has other" in refusal(engine)


# Reading ahead, secrets, opening


def test_warming_reads_the_prompt_and_nothing_else():
    with against({"/completion": llama(" w")}) as (server, engine):
        list(engine.warm(gap()))
        answer(engine)
        warm, asked = server.bodies
        assert warm["n_predict"] == 0
        assert warm["prompt"] == asked["prompt"]


def test_warming_a_server_that_is_gone_says_so_in_the_notes():
    with engine_for(record(f"http://127.0.0.1:{free_port()}")) as engine:
        list(engine.warm(gap()))
        assert "does not answer" in engine.info().notes[0]
        list(engine.warm(gap()))


def test_servers_elsewhere_need_https_and_leave():
    made = record("https://api.example.org", "mistral", "")
    with pytest.raises(EngineError, match=r"another machine: set privacy\.allow_network = true"):
        open_remote(made)
    with pytest.raises(EngineError, match="unencrypted: use https"):
        open_remote(replace(made, address="http://10.0.0.7:8080"), network=True)
    with pytest.raises(EngineError, match=r"set engine\.address"):
        open_remote(replace(made, protocol="mercury"), network=True)


def test_opening_looks_whether_the_server_is_there():
    engine = open_remote(record(f"http://127.0.0.1:{free_port()}", model="m"))
    assert "does not answer" in engine.info().notes[0]
    engine.close()
    with serving({"/v1/models": document({"data": [{"id": "m"}]})}) as server:
        engine = open_remote(record(server, model="m"))
        info = engine.info()
        assert (info.notes, info.model, info.address) == ((), "theirs", server.address)
        engine.close()


def test_prompt_is_needed_where_server_has_none():
    with pytest.raises(EngineError, match="--prompt NAME"):
        open_remote(record("http://127.0.0.1:1", "openai", ""))
