"""What the ledger calls shared is there once: in the pool, whose room for KV grows by it, and in host memory, whose
pages the kernel counts."""

import json
import math
import random
import re
import shutil
import struct
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from mesh import ROOT, Mesh, wait_until

PAGE = 2 << 20
HIDDEN, INTERMEDIATE, LAYERS, VOCABULARY = 1024, 4096, 6, 264
ATTENTION_HEADS, KV_HEADS, HEAD_DIM = 8, 2, 128
WAIT_S = 60
# The high byte of a bf16 between 0.0078 and 0.031, with the sign of a random byte.
SIGN_AND_EXPONENT = bytes(0x3C | (byte & 0x80) for byte in range(256))


def shapes():
    """Of a Llama's tensors, in the order of its layers; about 180 MB in bf16."""
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
        yield at + "self_attn.q_proj.weight", (ATTENTION_HEADS * HEAD_DIM, HIDDEN)
        yield at + "self_attn.k_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
        yield at + "self_attn.v_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
        yield at + "self_attn.o_proj.weight", (HIDDEN, ATTENTION_HEADS * HEAD_DIM)
        for name in ("gate", "up"):
            yield at + f"mlp.{name}_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "mlp.down_proj.weight", (HIDDEN, INTERMEDIATE)
    yield "model.norm.weight", (HIDDEN,)


def is_common(name):
    """Whole layers, about 60 % of the bytes, and the embeddings."""
    found = re.match(r"model\.layers\.(\d+)\.", name)
    return found is None or int(found[1]) < 4 * LAYERS // 6


def write_checkpoint(folder, seed, common_seed):
    """Returns its bytes and those that depend on `common_seed` only."""
    folder.mkdir()
    small = ROOT / "models" / "A-arith"
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(small / file, folder)
    config = json.loads((small / "config.json").read_text())
    config |= {"hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS,
               "num_attention_heads": ATTENTION_HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM}
    (folder / "config.json").write_text(json.dumps(config))
    header, end, common = {}, 0, 0
    for name, shape in shapes():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
        common += size * is_common(name)
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for number, (name, shape) in enumerate(shapes()):
            source = random.Random(1000 * (common_seed if is_common(name) else seed) + number)
            values = bytearray(source.randbytes(2 * math.prod(shape)))
            values[1::2] = values[1::2].translate(SIGN_AND_EXPONENT)
            file.write(values)
    return end, common


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """`one` and `variant` have their common tensors from one seed; `other` has nothing in common with them."""
    folder = tmp_path_factory.mktemp("zoo")
    total, common = write_checkpoint(folder / "one", 1, 10)
    write_checkpoint(folder / "variant", 2, 10)
    write_checkpoint(folder / "other", 3, 11)
    assert total > 100e6 and 0.55 < common / total < 0.7
    return folder, total, common


@contextmanager
def serving(folder, state, models):
    lines = ["[mesh]", 'log = "info"']
    for model in models:
        lines += ["[[model]]", f'id = "{model}"', f'path = "{folder / model}"']
    lines += ["[[worker]]", 'name = "worker/1"', 'memory = "768MiB"', f'page = "{PAGE >> 20}MiB"', "preload = false",
              'host_memory = "1GiB"', "threads = 1"]
    file = state / ("-".join(models) + ".toml")
    file.write_text("\n".join(lines))
    with Mesh("--processes", "--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        yield mesh, http


def order(http, verb, model, **fields):
    reply = http.post(f"/admin/{verb}", json={"models": [model], **fields})
    assert reply.status_code == 200, reply.text


def memory(http, key="pool_bytes", above=0):
    """As soon as the worker tells of more than `above`."""
    found = {}

    def told():
        found.update(http.get("/admin/memory").json()["workers"][0])
        return found[key] > above

    wait_until(told, WAIT_S, f"{key} above {above}")
    return found


def pss(mesh):
    """Proportional set size of all processes of the mesh: a page that several map counts once. `Pss_Anon`: of memory
    that is no file's."""
    total = {"Pss": 0, "Pss_Anon": 0, "Pss_Shmem": 0}
    children = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    waiting = [mesh.process.pid]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            key, _, value = line.partition(":")
            if key in total:
                total[key] += int(value.split()[0]) * 1024
    return total


def awake(zoo, state, models):
    """The worker's memory, and the mesh's, with all of the models active."""
    folder, total, _ = zoo
    with serving(folder, state, models) as (mesh, http):
        before = memory(http)
        for model in models:
            order(http, "wake", model)
        return before, memory(http, "weights_bytes", total + PAGE), pss(mesh)


def asleep(zoo, state, models):
    """The same with all of them in host memory, and what their coming has added to anonymous memory."""
    folder, total, _ = zoo
    with serving(folder, state, models) as (mesh, http):
        before = pss(mesh)["Pss_Anon"]
        for model in models:
            order(http, "load", model)
        return memory(http, "host_bytes", total), pss(mesh)["Pss_Anon"] - before


def test_room_in_the_pool_grows_by_what_the_ledger_calls_shared(zoo, tmp_path):
    _, total, common = zoo
    _, apart, _ = awake(zoo, tmp_path, ("one", "other"))
    empty, shared, processes = awake(zoo, tmp_path, ("one", "variant"))
    assert apart["shared_bytes"] == 0
    assert shared["shared_bytes"] == common
    # Each load loses less than a page to rounding.
    assert abs(apart["weights_bytes"] - 2 * total) < 2 * PAGE
    assert abs(shared["weights_bytes"] - (2 * total - common)) < 2 * PAGE
    assert abs(shared["free_bytes"] - apart["free_bytes"] - common) <= max(2 * PAGE, common // 100)
    assert shared["free_bytes"] + shared["weights_bytes"] == empty["free_bytes"]
    # The pool is one and is there from the start: loading a model adds nothing to it.
    assert abs(processes["Pss_Shmem"] - shared["pool_bytes"]) < shared["pool_bytes"] // 100


def test_pss_of_sleeping_models_falls_by_what_they_share(zoo, tmp_path):
    _, total, common = zoo
    apart, apart_pss = asleep(zoo, tmp_path, ("one", "other"))
    shared, shared_pss = asleep(zoo, tmp_path, ("one", "variant"))
    assert apart["host_bytes"] - shared["host_bytes"] == common
    assert apart["host_bytes"] == 2 * total
    print(f"PSS falls by {apart_pss - shared_pss}, shared are {common}")
    assert abs(apart_pss - shared_pss - common) < common // 100
