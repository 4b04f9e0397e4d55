#!/usr/bin/env python3
"""Measures llama.cpp on the checkpoint that bench_engine wrote, in an environment of its own.

Usage: peer.py FOLDER [--threads N]

FOLDER/model holds the checkpoint. FOLDER/venv gets llama-cpp-python (built for this machine, once: minutes) and gguf
from PyPI, FOLDER/model.gguf the same bf16 weights. Prints lines "name tokens-per-second" on standard output, all else
on standard error; prints nothing where llama.cpp cannot be had.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

CONTEXT = 512
BATCHES = [1, 8, 32]
PACKAGES = ["numpy", "gguf==0.19.0", "llama-cpp-python==0.3.36"]


def enter_environment(folder):
    """Goes on in FOLDER/venv, which is made where it is not there."""
    python = folder / "venv" / "bin" / "python"
    done = folder / "venv" / "complete"
    if not done.exists():
        print("building llama.cpp (once, some minutes) ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, stdout=sys.stderr)
        flags = os.environ | {"CMAKE_ARGS": "-DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DMTMD_BUILD=OFF -DLLAVA_BUILD=OFF"}
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, stdout=sys.stderr, env=flags)
        done.write_text("")
    if pathlib.Path(sys.prefix) != (folder / "venv").resolve():
        os.execv(python, [python, *sys.argv])


def read_checkpoint(folder):
    """Config, and name -> (shape, bf16 bits)."""
    import numpy

    config = json.loads((folder / "config.json").read_text())
    raw = numpy.memmap(folder / "model.safetensors", dtype=numpy.uint8, mode="r")
    length = int(raw[:8].view(numpy.uint64)[0])
    header = json.loads(bytes(raw[8:8 + length]))
    body = raw[8 + length:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = body[begin:end].view(numpy.uint16).reshape(entry["shape"])
    return config, tensors


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, *rest, kind = name.split(".")
    part = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
            "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
            "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}[rest[-1]]
    return f"blk.{layer}.{part}.{kind}"


def write_gguf(source, target):
    """The same bits; vectors in fp32, as llama.cpp wants them; no vocabulary."""
    import gguf
    import numpy

    config, tensors = read_checkpoint(source)
    writer = gguf.GGUFWriter(target, "qwen2")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    writer.add_tokenizer_model("none")
    for name, bits in tensors.items():
        if bits.ndim == 1:
            writer.add_tensor(gguf_name(name), (bits.astype(numpy.uint32) << 16).view(numpy.float32))
        else:
            writer.add_tensor(gguf_name(name), numpy.ascontiguousarray(bits).view(numpy.uint8),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Peer:
    def __init__(self, path, threads):
        import llama_cpp

        self.api = llama_cpp
        llama_cpp.llama_backend_init()
        model_settings = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), model_settings)
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = (CONTEXT + 64) * max(BATCHES)
        settings.n_seq_max = max(BATCHES)
        settings.n_batch = settings.n_ubatch = CONTEXT
        settings.n_threads = settings.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        self.batch = llama_cpp.llama_batch_init(CONTEXT, 0, max(BATCHES))

    def step(self, rows):
        """rows: (token, position, sequence, whether its logits are wanted). Seconds that the step took."""
        self.batch.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            self.batch.token[i] = token
            self.batch.pos[i] = position
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = sequence
            self.batch.logits[i] = wanted
        start = time.perf_counter()
        if self.api.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")
        self.api.llama_synchronize(self.context)
        return time.perf_counter() - start

    def measure(self):
        memory = self.api.llama_get_memory(self.context)
        prompt = [(i * 7919 % 151936, i, 0, i == CONTEXT - 1) for i in range(CONTEXT)]
        seconds = []
        for _ in range(6):
            self.api.llama_memory_clear(memory, True)
            seconds.append(self.step(prompt))
        print("prefill", CONTEXT / min(seconds[1:]), flush=True)
        for sequence in range(1, max(BATCHES)):
            self.api.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
        position = CONTEXT
        for batch in BATCHES:
            seconds = []
            for _ in range(21 if batch == 1 else 9):
                # Sequences that rest keep their length; those that step are cut back to the same context.
                for sequence in range(batch):
                    self.api.llama_memory_seq_rm(memory, sequence, position, -1)
                seconds.append(self.step([(sequence, position, sequence, True) for sequence in range(batch)]))
            print(f"decode_{batch}", batch / min(seconds[1:]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    try:
        enter_environment(options.folder)
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"llama.cpp cannot be built here: {error}")
    target = options.folder / "model.gguf"
    source = options.folder / "model"
    if not target.exists() or target.stat().st_mtime < (source / "model.safetensors").stat().st_mtime:
        write_gguf(source, target)
    Peer(target, options.threads).measure()


if __name__ == "__main__":
    main()
