"""Imitated servers, by the paths that they answer."""

from mercury_engine.remote.probe import Found, Served, probe, running
from tests.engine.remote.servers import document, free_port, lines_of, serving, streamed

QWEN = "Qwen2.5-Coder-1.5B-Q8_0.gguf"
PROPS = {
    "default_generation_settings": {"n_ctx": 8192},
    "total_slots": 1,
    "model_path": f"/models/{QWEN}",
    "build_info": "b7919",
}
ONE_TOKEN = streamed([{"content": "1", "stop": False}, {"content": "", "stop": True, "stop_type": "limit"}], done=False)


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
        assert probe(server.address) == Found(
            server.address, "llama-server b7919", "llama", (Served(QWEN, "qwen", 8192),), completes=True
        )
        assert server.bodies[-1]["n_predict"] == 1


def test_tokens_say_more_than_a_name():
    mellum = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>", "<repo_name>")
    answers = {"/props": document(PROPS), "/v1/models": listed("mellum.gguf"), "/completion": ONE_TOKEN}
    with serving({**answers, "/tokenize": tokenize(*mellum)}) as server:
        assert probe(server.address).models[0].prompt == "mellum"


def test_a_model_whose_prompts_only_the_server_knows():
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


def test_a_server_that_is_up_but_does_not_complete():
    refusing = document({"error": {"message": "Loading model", "code": 503}}, 503)
    answers = {"/props": document(PROPS), "/v1/models": listed(QWEN), "/completion": refusing}
    with serving(answers) as server:
        found = probe(server.address)
        assert (found.completes, found.note) == (False, "it does not complete (503): Loading model")


def test_a_key_is_wanted_and_given():
    def guarded(line, asked):
        known = asked.headers.get("authorization") == "Bearer k3y"
        (listed("m") if known else document({"error": "no"}, 401))(line, asked)

    with serving({"/v1/models": guarded}) as server:
        assert probe(server.address).note == "it wants a key (401)"
        assert probe(server.address, key="k3y").models == (Served("m"),)


def test_an_engine_server_of_ours():
    with serving({"/engine/v1/info": document({"state": "ready"})}) as server:
        assert probe(server.address).protocol == "mercury"


def test_what_is_no_such_server():
    page = {path: lambda line, asked: line.whole("<html>", kind="text/html") for path in ("/props", "/v1/models")}
    with serving(page) as server:
        assert probe(server.address) is None
    with serving({"/props": lambda line, asked: line.send("SSH-2.0\r\n")}) as server:
        assert probe(server.address) is None
    assert probe(f"http://127.0.0.1:{free_port()}") is None


def test_what_runs_on_this_machine_is_found_without_loading_a_model():
    with serving(ollama("qwen2.5-coder:1.5b")) as server:
        (found,) = running((server.port, free_port()), seconds=5.0)
        assert (found.address, found.protocol) == (server.address, "ollama")
        assert server.bodies == []


def test_a_program_that_says_nothing_is_not_waited_for():
    with serving({"/props": lambda line, asked: line.is_left()}) as server:
        assert running((server.port,), seconds=0.02) == []
