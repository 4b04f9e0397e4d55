"""A model of about 150 MB with random weights, whose way over a network takes long enough for something to happen."""

import json
import os
import shutil
import struct

from mesh import ROOT

HIDDEN, INNER, LAYERS, HEADS, HEAD = 1024, 4096, 4, 8, 128


def tensors(vocabulary):
    yield "model.embed_tokens.weight", [vocabulary, HIDDEN]
    yield "model.norm.weight", [HIDDEN]
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", [HIDDEN]
        yield prefix + "post_attention_layernorm.weight", [HIDDEN]
        for name in "qkvo":
            yield prefix + f"self_attn.{name}_proj.weight", [HIDDEN, HIDDEN]
        for name in ("gate", "up"):
            yield prefix + f"mlp.{name}_proj.weight", [INNER, HIDDEN]
        yield prefix + "mlp.down_proj.weight", [HIDDEN, INNER]


def small_numbers(count):
    """BF16, each between 2^-7 and 2^-5 or its negative."""
    numbers = bytearray(2 * count)
    numbers[0::2] = os.urandom(count)
    numbers[1::2] = os.urandom(count).translate(bytes(0x3C if byte < 128 else 0xBC for byte in range(256)))
    return numbers


def write_big_model(folder):
    shutil.copytree(ROOT / "models" / "A-arith", folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = json.loads((folder / "config.json").read_text())
    config.update(hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                  num_key_value_heads=HEADS, head_dim=HEAD)
    (folder / "config.json").write_text(json.dumps(config))
    header, offset = {}, 0
    for name, shape in tensors(config["vocab_size"]):
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for entry in header.values():
            begin, end = entry["data_offsets"]
            file.write(small_numbers((end - begin) // 2))
    return folder
