"""Writes configs.json: config.json texts of the supported families and what transformers reads from them.

Run with transformers >= 5 installed: python make_configs.py > configs.json
"""
import json
import math
import tempfile

from transformers import AutoConfig

LLAMA31 = dict(model_type="llama", vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=131072, rms_norm_eps=1e-5,
               rope_theta=500000.0, tie_word_embeddings=False, attention_bias=False, mlp_bias=False, hidden_act="silu",
               torch_dtype="bfloat16", bos_token_id=128000, eos_token_id=[128001, 128008, 128009],
               rope_scaling=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                 original_max_position_embeddings=8192, rope_type="llama3"))
SMALL = dict(vocab_size=512, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4)
QWEN25 = dict(model_type="qwen2", vocab_size=152064, hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
              num_attention_heads=28, num_key_value_heads=4, max_position_embeddings=32768, max_window_layers=28,
              rms_norm_eps=1e-6, rope_theta=1000000.0, sliding_window=131072, use_sliding_window=False,
              tie_word_embeddings=False, torch_dtype="bfloat16", bos_token_id=151643, eos_token_id=151645,
              hidden_act="silu")
QWEN3 = dict(model_type="qwen3", vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28,
             num_attention_heads=16, num_key_value_heads=8, head_dim=128, max_position_embeddings=40960,
             max_window_layers=28, rms_norm_eps=1e-6, rope_theta=1000000, rope_scaling=None, sliding_window=None,
             use_sliding_window=False, tie_word_embeddings=True, attention_bias=False, torch_dtype="bfloat16",
             bos_token_id=151643, eos_token_id=151645, hidden_act="silu")
MISTRAL = dict(model_type="mistral", vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=32768, rms_norm_eps=1e-5,
               rope_theta=10000.0, sliding_window=4096, tie_word_embeddings=False, torch_dtype="bfloat16",
               bos_token_id=1, eos_token_id=2, hidden_act="silu")

CASES = {
    "Llama 3.1": LLAMA31,
    "a llama that states only its sizes": dict(model_type="llama", **SMALL),
    "a mistral that states only its sizes": dict(model_type="mistral", **{**SMALL, "num_attention_heads": 8}),
    "a qwen2 that states only its sizes": dict(model_type="qwen2", **{**SMALL, "num_attention_heads": 32}),
    "a qwen3 that states only its sizes": dict(model_type="qwen3", **{**SMALL, "num_attention_heads": 32}),
    "null for what has a default": dict(model_type="llama", **SMALL, num_key_value_heads=None, head_dim=None,
                                        rope_scaling=None, bos_token_id=None, eos_token_id=None),
    "linear scaling in the old spelling": dict(model_type="llama", **SMALL, rope_scaling=dict(type="linear", factor=2.5)),
    "biases of a llama": dict(model_type="llama", **SMALL, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "Qwen 2.5": QWEN25,
    "Qwen 2.5 with yarn": {**QWEN25, "rope_scaling": dict(type="yarn", factor=4.0,
                                                          original_max_position_embeddings=32768)},
    "yarn with all of its fields": dict(model_type="llama", **SMALL, max_position_embeddings=65536,
                                        rope_scaling=dict(rope_type="yarn", factor=16.0, attention_factor=1.25,
                                                          beta_fast=24, beta_slow=2.0,
                                                          original_max_position_embeddings=4096)),
    "yarn with mscale": dict(model_type="llama", **SMALL, max_position_embeddings=65536,
                             rope_scaling=dict(rope_type="yarn", factor=16.0, mscale=1.0, mscale_all_dim=0.5,
                                               original_max_position_embeddings=4096)),
    "Qwen 3 0.6B": QWEN3,
    "a qwen3 with biases": {**QWEN3, "attention_bias": True},
    "a qwen2 with a window in every layer": {**QWEN25, "use_sliding_window": True, "sliding_window": 4096,
                                             "max_window_layers": 0},
    "a qwen2 whose window begins after its last layer": {**QWEN25, "use_sliding_window": True, "sliding_window": 4096},
    "a qwen2 that lists full attention only": {**QWEN25, "use_sliding_window": True, "sliding_window": 4096,
                                               "max_window_layers": 0, "layer_types": ["full_attention"] * 28},
    "Mistral 7B v0.1": MISTRAL,
    "Mistral 7B v0.3": {**MISTRAL, "vocab_size": 32768, "rope_theta": 1000000.0, "sliding_window": None},
    "rope_parameters and dtype of version 5": {
        **{k: v for k, v in LLAMA31.items() if k not in ("rope_scaling", "rope_theta", "torch_dtype")},
        "dtype": "float16", "rope_parameters": {**LLAMA31["rope_scaling"], "rope_theta": 250000.0}},
    "rope_parameters with theta only": {**{k: v for k, v in QWEN3.items() if k not in ("rope_scaling", "rope_theta")},
                                        "rope_parameters": dict(rope_type="default", rope_theta=5000000.0)},
}


def window_of(c):
    if c.model_type == "llama":
        return 0
    if c.model_type == "mistral":
        return c.sliding_window or 0
    kinds = set(c.layer_types)
    assert len(kinds) == 1
    return c.sliding_window if kinds == {"sliding_attention"} else 0


def rope_of(c):
    r = c.rope_parameters
    kind = r["rope_type"]
    out = dict(rope_kind="none" if kind == "default" else kind, rope_theta=r["rope_theta"])
    for key in ("factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow"):
        if r.get(key) is not None:
            out[key] = r[key]
    if kind in ("llama3", "yarn"):
        out["original_context"] = r["original_max_position_embeddings"]
    if kind == "yarn":
        scale = lambda m: 0.1 * m * math.log(r["factor"]) + 1.0
        out["attention_factor"] = r.get("attention_factor") or (
            scale(r["mscale"]) / scale(r["mscale_all_dim"]) if r.get("mscale") else 0.0)
    return out


def expected(c):
    attention_bias = getattr(c, "attention_bias", False)
    eos = c.eos_token_id
    return dict(context=c.max_position_embeddings, layers=c.num_hidden_layers, heads=c.num_attention_heads,
                kv_heads=c.num_key_value_heads,
                head_dim=getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads,
                sliding_window=window_of(c), rms_norm_eps=c.rms_norm_eps, tied=c.tie_word_embeddings,
                qkv_bias=True if c.model_type == "qwen2" else attention_bias, output_bias=attention_bias,
                mlp_bias=getattr(c, "mlp_bias", False), qk_norm=c.model_type == "qwen3",
                dtype=str(c.dtype or "float32").replace("torch.", ""), bos=c.bos_token_id,
                eos=[] if eos is None else eos if isinstance(eos, list) else [eos], **rope_of(c))


def main():
    cases = []
    for name, config in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/config.json", "w") as f:
                json.dump(config, f)
            cases.append(dict(name=name, config=config, expected=expected(AutoConfig.from_pretrained(folder))))
    print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")


main()
