"""Imitated servers, by the paths that they answer."""

from urllib.parse import quote

import msgspec
import pytest

from bench.harness.servers import document, free_port, lines_of, serving, streamed
from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord
from mercury_engine.redaction import Secrets
from mercury_engine.remote import probe as probing
from mercury_engine.remote.http import Reply
from mercury_engine.remote.probe import ProbedServer, Served, running
from tests.engine.remote.tls import with_tls
from tests.model_servers import wrongly_typed

QWEN = "Qwen2.5-Coder-1.5B-Q8_0.gguf"
PROPS = {
    "default_generation_settings": {"n_ctx": 8192},
    "total_slots": 1,
    "model_path": f"/models/{QWEN}",
    "build_info": "b7919",
}
ONE_TOKEN = streamed([{"content": "1", "stop": False}, {"content": "", "stop": True, "stop_type": "limit"}], done=False)


def probe(address, **fields) -> ProbedServer | None:
    return probing.probe(ModelRecord(name="theirs", kind="server", prompt="", address=address, **fields))


def listed(*names: str, **more):
    return document({"object": "list", "data": [{"id": name, **more} for name in names]})


def tokenize(*special: str):
    """As llama-server: what is no special token of the model is cut into characters."""

    def answer(line, asked):
        pieces = [p for text in asked.json["content"].split("\n") for p in ([text] if text in special else text)]
        document({"tokens": [{"id": i, "piece": piece} for i, piece in enumerate(pieces)]})(line, asked)

    return answer


def test_llama_server():
    answers = {"/props": document(PROPS), "/v1/models": listed(QWEN), "/completion": ONE_TOKEN}
    with serving(answers) as server:
        assert probe(server.address) == ProbedServer(
            server.address, "llama-server b7919", "llama", (Served(QWEN, "qwen", 8192),), completes=True
        )
        assert server.bodies[-1]["n_predict"] == 1


def test_tokens_say_more_than_a_name():
    mellum = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>", "<repo_name>")
    answers = {"/props": document(PROPS), "/v1/models": listed("mellum.gguf"), "/completion": ONE_TOKEN}
    with serving({**answers, "/tokenize": tokenize(*mellum)}) as server:
        assert probe(server.address).models[0].prompt == "mellum"


ZETA_TOKENS = ("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>")


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [(ZETA_TOKENS, ""), (ZETA_TOKENS[1:], "<[fim-suffix]> is no token: this file splits it into 14 tokens")],
)
def test_file_that_splits_its_marks_is_named(tokens, problem):
    answers = {"/props": document(PROPS), "/v1/models": listed("zeta-2-q8.gguf"), "/completion": ONE_TOKEN}
    with serving({**answers, "/tokenize": tokenize(*tokens)}) as server:
        found = probe(server.address)
    assert (found.note.partition(";")[0], found.completes) == (problem, not problem)


def test_infill_is_used_where_only_server_knows_the_prompts():
    answers = {"/props": document(PROPS | {"model_path": ""}), "/v1/models": listed("mine"), "/infill": ONE_TOKEN}
    with serving(answers) as server:
        found = probe(server.address)
        assert (found.protocol, found.models, found.completes) == ("llama-infill", (Served("mine", "", 8192),), True)


def ollama(*names: str):
    models = {"models": [{"name": name, "model": name} for name in names]}
    one = lines_of([{"response": "1", "done": False}, {"response": "", "done": True, "done_reason": "length"}])
    return {"/api/version": document({"version": "0.14.1"}), "/api/tags": document(models), "/api/generate": one}


def test_ollama_is_not_made_to_load_one_model_of_several():
    with serving(ollama("qwen2.5-coder:1.5b", "llama3.2:3b")) as server:
        found = probe(server.address)
        assert (found.server, found.completes) == ("Ollama 0.14.1", None)
        assert found.models == (Served("qwen2.5-coder:1.5b", "qwen", 8192), Served("llama3.2:3b", "", 8192))
        assert probe(server.address, model="qwen2.5-coder:1.5b").completes
        assert server.bodies[-1]["options"]["num_ctx"] == 8192


def test_lm_studio():
    models = {"models": [{"type": "llm", "key": "codestral-22b", "max_context_length": 32768}, {"type": "embedding"}]}
    one = document({"choices": [{"text": "1", "finish_reason": "length"}]})
    with serving({"/api/v1/models": document(models), "/v1/completions": one}) as server:
        found = probe(server.address)
        assert (found.server, found.models) == ("LM Studio", (Served("codestral-22b", "codestral", 32768),))
        assert found.completes


def test_tabby():
    answers = {
        "/v1/health": document({"model": "StarCoder2-3B", "device": "cpu"}),
        "/v1/completions": document({"id": "1", "choices": [{"index": 0, "text": "1"}]}),
    }
    with serving(answers) as server:
        found = probe(server.address)
        assert (found.server, found.protocol, found.completes) == ("Tabby", "tabby", True)


def test_vllm():
    one = document({"choices": [{"text": "1", "finish_reason": "length"}]})
    with serving(
        {"/v1/models": listed("Qwen/Qwen2.5-Coder-7B", max_model_len=32768), "/v1/completions": one}
    ) as server:
        found = probe(server.address)
        assert found.models == (Served("Qwen/Qwen2.5-Coder-7B", "qwen", 32768),)
        assert found.protocol == "openai"


def test_running_server_that_does_not_complete_is_reported():
    refusing = document({"error": {"message": "Loading model", "code": 503}}, 503)
    answers = {"/props": document(PROPS), "/v1/models": listed(QWEN), "/completion": refusing}
    with serving(answers) as server:
        found = probe(server.address)
        assert (found.completes, found.note) == (False, "it does not complete (503): Loading model")


def test_key_is_wanted_and_given(monkeypatch):
    monkeypatch.setenv("K", "k3y")

    def guarded(line, asked):
        known = asked.headers.get("authorization") == "Bearer k3y"
        (listed("m") if known else document({"error": "no"}, 401))(line, asked)

    with serving({"/v1/models": guarded}) as server:
        assert probe(server.address).note == "it wants a key (401): give it with --key or --header"
        assert probe(server.address, key="env:K").models == (Served("m"),)


def test_own_engine_server_is_recognised():
    with serving({"/engine/v2/info": document({"state": "ready"})}) as server:
        assert probe(server.address).protocol == "mercury"


def test_unknown_server_is_not_recognised():
    page = {path: lambda line, asked: line.whole("<html>", kind="text/html") for path in ("/props", "/v1/models")}
    with serving(page) as server:
        assert probe(server.address) is None
    with serving({"/props": lambda line, asked: line.send("SSH-2.0\r\n")}) as server:
        assert probe(server.address) is None
    assert probe(f"http://127.0.0.1:{free_port()}") is None


def test_local_servers_are_found_without_loading_a_model():
    with serving(ollama("qwen2.5-coder:1.5b")) as server:
        (found,) = running((server.port, free_port()), seconds=5.0)
        assert (found.address, found.protocol) == (server.address, "ollama")
        assert server.bodies == []


def test_silent_program_is_not_waited_for():
    with serving({"/props": lambda line, asked: line.is_left()}) as server:
        assert running((server.port,), seconds=0.02) == []


def router(*names: str):
    """llama-server without a model of its own: what it says of a model, it says after the model was loaded."""
    none = {"role": "router", "model_path": "none", "default_generation_settings": {"params": {}, "n_ctx": 0}}
    loaded: list[str] = []

    def load(name: str, then):
        def answer(line, asked):
            missing = document({"error": {"code": 400, "message": f"model '{name}' not found"}}, 400)
            loaded.append(name)
            (then if name in names else missing)(line, asked)

        return answer

    def by_body(then):
        return lambda line, asked: load(asked.json.get("model", ""), then)(line, asked)

    entries = [{"id": name, "object": "model", "status": {"value": "unloaded"}} for name in names]
    props = {f"/props?model={quote(name, safe='')}": load(name, document(PROPS)) for name in names}
    answers = {"/props": document({**none, "build_info": "b9000"}), "/v1/models": document({"data": entries})}
    completing = {"/tokenize": by_body(tokenize("<|fim_prefix|>")), "/completion": by_body(ONE_TOKEN)}
    return {**answers, **props, **completing, "/infill": by_body(ONE_TOKEN)}, loaded


def test_llama_server_with_several_models_loads_none_before_choice():
    answers, loaded = router("ggml-org/A-GGUF:Q8_0", "llama-3.2")
    with serving(answers) as server:
        found = probe(server.address)
        assert (found.server, found.protocol, found.completes) == ("llama-server b9000", "llama", None)
        assert found.models == (Served("ggml-org/A-GGUF:Q8_0"), Served("llama-3.2"))
        assert loaded == []


def test_chosen_model_of_llama_server_with_several_is_probed():
    answers, loaded = router("ggml-org/A-GGUF:Q8_0", "llama-3.2")
    with serving(answers) as server:
        found = probe(server.address, model="ggml-org/A-GGUF:Q8_0")
        assert (found.protocol, found.completes) == ("llama", True)
        assert found.models[0] == Served("ggml-org/A-GGUF:Q8_0", "qwen", 8192)
        assert set(loaded) == {"ggml-org/A-GGUF:Q8_0"}
        assert server.asked[2].path == "/props?model=ggml-org%2FA-GGUF%3AQ8_0"


def test_named_protocol_is_not_guessed():
    one = document({"choices": [{"text": "1", "finish_reason": "length"}]})
    answers = {"/v1/models": listed("mercury-edit-2"), "/v1/fim/completions": one}
    with serving(answers) as server:
        assert probe(server.address, protocol="inception", model="mercury-edit-2") == ProbedServer(
            server.address,
            "a server spoken to as inception",
            "inception",
            (Served("mercury-edit-2"),),
            completes=True,
        )
        assert [asked.path for asked in server.asked] == ["/v1/models", "/v1/fim/completions"]
        assert not probe(server.address, protocol="deepseek", model="deepseek-v4-flash").completes
    with serving({"/v1/fim/completions": one}) as server:
        assert probe(server.address, protocol="mistral", model="codestral").completes
        assert server.bodies[-1]["model"] == "codestral"


def test_named_protocol_lists_its_models():
    with serving(ollama("qwen2.5-coder:1.5b")) as server:
        (served,) = probe(server.address, protocol="ollama").models
        assert served == Served("qwen2.5-coder:1.5b", "qwen", 8192)
    with serving({"/v1/models": listed("Qwen/Qwen2.5-Coder-7B", max_model_len=4096)}) as server:
        assert probe(server.address, protocol="openai").models == (Served("Qwen/Qwen2.5-Coder-7B", "qwen", 4096),)
        assert probe(server.address, protocol="mistral").models == (Served("Qwen/Qwen2.5-Coder-7B", "", 4096),)


def test_certificate_or_proxy_in_the_way_is_reported(monkeypatch):
    with serving({}, wrap=with_tls()) as server, pytest.raises(EngineError, match=r"not trusted .*--ca FILE"):
        probe(f"https://localhost:{server.port}")
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(EngineError, match=r"is not reached: the proxy 127.0.0.1:[0-9]+ does not answer .*HTTPS_PROXY"):
        probe("https://models.example")


class Replies:
    """Answers at once, without a connection."""

    secrets = Secrets()

    def __init__(self, answers) -> None:
        self.answers = answers

    def fetch(self, method, path, body=b"", *, seconds):
        return Reply(200 if path in self.answers else 404, {}, msgspec.json.encode(self.answers.get(path)))


MODELS = {"data": [{"id": "m", "max_model_len": 4096, "status": {"value": "loaded"}}]}
SERVERS = {
    "llama-server": {
        "/props": PROPS | {"model_alias": "m"},
        "/v1/models": MODELS,
        "/tokenize": {"tokens": [{"id": 1, "piece": "<|fim_prefix|>"}]},
        "/completion": {"content": "1", "stop": True},
    },
    "a router": {
        "/props": PROPS | {"default_generation_settings": {"n_ctx": 0}},
        "/v1/models": MODELS,
        "/props?model=m": PROPS,
    },
    "Ollama": {"/api/version": {"version": "1"}, "/api/tags": {"models": [{"name": "m", "model": "m"}]}},
    "LM Studio": {"/api/v1/models": {"models": [{"type": "llm", "key": "m", "max_context_length": 4096}]}},
    "Tabby": {"/v1/health": {"model": "m", "device": "cpu"}},
    "vLLM": {
        "/v1/models": MODELS,
        "/tokenize": {"token_strs": ["<|fim_prefix|>"]},
        "/v1/completions": {
            "choices": [{"text": "1", "finish_reason": "length", "logprobs": {"token_logprobs": [-1]}}]
        },
    },
    "ours": {"/engine/v2/info": {"state": "ready"}},
}


@pytest.mark.parametrize("server", SERVERS)
def test_wrong_types_in_an_answer_are_no_traceback(server):
    for path, said in SERVERS[server].items():
        for wrong in wrongly_typed(said):
            client = Replies(SERVERS[server] | {path: wrong})
            found = probing._identified(client, "http://127.0.0.1:1", 5.0)
            if found and not found.note:
                assert all(served.context <= probing.MOST_CONTEXT for served in found.models)
                chosen = next(iter(found.models), Served(""))
                probing._chosen(client, found, chosen, ModelRecord(name="x", kind="server", prompt=""))


def test_json_that_is_deep_is_no_answer():
    deep = lambda line, asked: line.whole('{"data":' + "[" * 100_000)  # noqa: E731
    with serving({path: deep for path, _ in probing.READINGS}) as server:
        assert probe(server.address) is None
