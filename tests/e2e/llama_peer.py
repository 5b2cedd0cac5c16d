"""Runs where llama-cpp-python and gguf are installed, apart from everything else: writes a GGUF file, and completes
prompts with it as llama.cpp does without any server.

    llama_peer.py write ARRAYS.npz MODEL.json OUT.gguf
    llama_peer.py complete OUT.gguf TOKENS < prompts.json > answers.json
"""

import json
import sys

import numpy as np


def write(arrays: str, about: str, target: str) -> None:
    import gguf

    with open(about, encoding="utf-8") as file:
        model = json.load(file)
    writer = gguf.GGUFWriter(target, "qwen3")
    writer.add_name(model["name"])
    writer.add_block_count(model["layers"])
    writer.add_context_length(model["context"])
    writer.add_embedding_length(model["width"])
    writer.add_feed_forward_length(model["feed_forward"])
    writer.add_head_count(model["heads"])
    writer.add_head_count_kv(model["kv_heads"])
    writer.add_key_length(model["head_width"])
    writer.add_value_length(model["head_width"])
    writer.add_rope_freq_base(model["rope_theta"])
    writer.add_layer_norm_rms_eps(model["norm_epsilon"])
    writer.add_vocab_size(model["vocabulary"])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(model["tokens"])
    special, plain = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([special if number < model["specials"] else plain for number in range(len(model["tokens"]))])
    writer.add_token_merges(model["merges"])
    writer.add_bos_token_id(model["bos"])
    writer.add_eos_token_id(model["eos"])
    writer.add_add_bos_token(True)
    with np.load(arrays) as found:
        for name in found.files:
            writer.add_tensor(name, found[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def complete(path: str, most: int) -> None:
    """The greedy tokens after each prompt, and the log probability of each."""
    import llama_cpp

    model = llama_cpp.Llama(path, n_ctx=1024, n_threads=1, logits_all=True, verbose=False)
    answers = []
    for prompt in json.load(sys.stdin):
        tokens = model.tokenize(prompt.encode(), add_bos=True, special=True)
        model.reset()
        model.eval(tokens)
        said: list[int] = []
        while len(said) < most:
            token = int(np.argmax(model.scores[model.n_tokens - 1]))
            if token == model.token_eos():
                break
            said.append(token)
            model.eval([token])
        answers.append({"prompt": tokens, "tokens": said, "text": model.detokenize(said).decode(errors="replace")})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    {"write": lambda: write(*sys.argv[2:]), "complete": lambda: complete(sys.argv[2], int(sys.argv[3]))}[sys.argv[1]]()
