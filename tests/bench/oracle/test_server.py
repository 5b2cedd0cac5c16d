"""The oracle speaks as llama-server and vLLM do, keeps to what it is asked for, and stops when nobody listens."""

import asyncio
import json
from typing import Any

from bench.oracle.server import Options, OracleServer, serving

TEXT = "def total(lines):\n    amount = 0\n    for line in lines:\n        amount += line.price\n    return amount\n"
BEFORE, BEHIND = TEXT.split(" = 0")
GAP = f"<|fim_prefix|>{BEFORE}<|fim_suffix|>{BEHIND}<|fim_middle|>"
FAST = Options(tokens_per_second=1e6)
SECONDS = 20.0


async def sent(oracle: OracleServer, path: str, **fields: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(oracle.address.rpartition(":")[2]))
    body = json.dumps(fields).encode()
    writer.write(f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return reader, writer


async def events(reader: asyncio.StreamReader) -> list[dict[str, Any]]:
    found = []
    while not (line := await reader.readline()).startswith(b"0\r"):
        if line.startswith(b"data: {"):
            found.append(json.loads(line[6:]))
    return found


async def streamed(options: Options, path: str = "/completion", **fields: Any) -> list[dict[str, Any]]:
    async with serving([TEXT], options) as oracle:
        reader, writer = await sent(oracle, path, stream=True, **fields)
        found = await events(reader)
        writer.close()
        return found


def text_of(messages: list[dict[str, Any]]) -> str:
    return "".join(message["content"] for message in messages)


async def until(met: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not met():
            await asyncio.sleep(0)


async def test_middle_comes_token_by_token():
    found = await streamed(FAST, prompt=GAP, n_predict=32)
    assert [message["content"] for message in found] == [" =", " ", "0", ""]
    assert found[-1]["stop_type"] == "eos"


async def test_base_model_runs_on_until_its_tokens_are_used_up():
    options = Options(tokens_per_second=1e6, runs_on=True)
    found = await streamed(options, prompt=GAP, n_predict=9)
    assert text_of(found) == " = 0\n    for line in lines"
    assert found[-1]["stop_type"] == "limit"


async def test_stop_words_are_not_said():
    options = Options(tokens_per_second=1e6, runs_on=True)
    found = await streamed(options, prompt=GAP, n_predict=32, stop=["\n"])
    assert (text_of(found), found[-1]["stop_type"]) == (" = 0", "word")


async def test_log_probabilities_come_with_their_tokens():
    options = Options(tokens_per_second=1e6, wisdom="constant")
    found = await streamed(options, prompt=GAP, n_predict=32, n_probs=1)
    told = [message["completion_probabilities"][0]["logprob"] for message in found[:-1]]
    assert told == [0.0, 0.0, 0.0]


async def test_gap_in_two_fields():
    found = await streamed(FAST, "/infill", input_prefix=BEFORE, input_suffix=BEHIND, prompt="", n_predict=32)
    assert text_of(found) == " = 0"


async def test_vllm():
    options = Options(kind="vllm", tokens_per_second=1e6, wisdom="constant")
    found = await streamed(options, "/v1/completions", prompt=GAP, max_tokens=32, logprobs=1)
    choices = [message["choices"][0] for message in found]
    assert "".join(choice["text"] for choice in choices) == " = 0"
    assert choices[0]["logprobs"]["token_logprobs"] == [0.0]
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, "stop"]


async def test_wrong_answer_stays_the_same():
    options = Options(tokens_per_second=1e6, right=0.0)
    first, second = [text_of(await streamed(options, prompt=GAP, n_predict=32)) for _ in range(2)]
    assert first == second != " = 0"


async def test_client_that_hangs_up_before_the_first_token_is_counted():
    async with serving([TEXT], Options(first_ms=3_600_000)) as oracle:
        _, writer = await sent(oracle, "/completion", prompt=GAP, n_predict=32, stream=True)
        await until(lambda: oracle.counts.requests)
        writer.close()
        await until(lambda: oracle.counts.vain)
        assert oracle.counts.tokens == 0


async def test_client_that_has_left_is_sent_nothing():
    async with serving([TEXT], Options(tokens_per_second=0.001)) as oracle:
        reader, writer = await sent(oracle, "/completion", prompt=GAP, n_predict=32, stream=True)
        await reader.readuntil(b"data: ")
        writer.close()
        await until(lambda: oracle.counts.stopped)
        assert oracle.counts.tokens == 1


async def test_several_slots_answer_at_once():
    async with serving([TEXT], Options(tokens_per_second=0.001, slots=2)) as oracle:
        first, second = [await sent(oracle, "/completion", prompt=GAP, n_predict=9, stream=True) for _ in range(2)]
        third = await sent(oracle, "/completion", prompt=GAP, n_predict=9, stream=True)
        for reader, _ in (first, second):
            await reader.readuntil(b"data: ")
        await until(lambda: oracle.counts.requests == 3)
        assert oracle.counts.tokens == 2
        first[1].close()
        await third[0].readuntil(b"data: ")
        for _, writer in (second, third):
            writer.close()
