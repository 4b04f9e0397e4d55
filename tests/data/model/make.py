#!/usr/bin/env python3
"""Writes small random models of every kind that the engine serves, and the logits that HF transformers computes for
them: all in fp32, and in fp32 with keys and values rounded to 16-bit floats, as the engine stores them.
Needs: pip install torch transformers safetensors. Usage: make.py [FOLDER]"""

import json
import pathlib
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=256, rms_norm_eps=1e-5,
             bos_token_id=1, eos_token_id=2, pad_token_id=None)
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}

MODELS = {
    "llama-tied": dict(model_type="llama", tie_word_embeddings=True),
    "llama-biased": dict(model_type="llama", attention_bias=True, mlp_bias=True, num_key_value_heads=4),
    "llama-linear": dict(model_type="llama", rope={"rope_type": "linear", "factor": 3.0}),
    "llama-llama3": dict(model_type="llama", rope=LLAMA3, rope_theta=500000.0, num_key_value_heads=1),
    "llama-yarn": dict(model_type="llama", rope=YARN, num_hidden_layers=3),
    "mistral-window": dict(model_type="mistral", sliding_window=24),
    "mistral-full": dict(model_type="mistral", sliding_window=None, head_dim=12),
    "qwen2-tied": dict(model_type="qwen2", tie_word_embeddings=True, head_dim=8, rope_theta=1000000.0),
    "qwen2-yarn": dict(model_type="qwen2", head_dim=8,
                       rope=YARN | {"attention_factor": 1.25, "beta_fast": 16.0, "beta_slow": 2.0}),
    "qwen3-tied": dict(model_type="qwen3", tie_word_embeddings=True, rope_theta=1000000.0),
    "qwen3-yarn": dict(model_type="qwen3", rope=YARN, rms_norm_eps=1e-6),
}
LENGTH = 150
ROWS = [0, 1, 23, 24, 63, 64, 100, LENGTH - 1]


class HalfCache(DynamicCache):
    """Keys and values lose what 16-bit floats cannot hold."""

    def update(self, key_states, value_states, *rest, **named):
        return super().update(key_states.half().float(), value_states.half().float(), *rest, **named)


def make(name, changes, folder):
    torch.manual_seed(sum(name.encode()))
    settings = SIZES | {"rope_theta": 10000.0, "tie_word_embeddings": False} | changes
    rope = settings.pop("rope", None)
    theta = settings.pop("rope_theta")
    settings["rope_parameters"] = {"rope_theta": theta, **(rope or {"rope_type": "default"})}
    config = AutoConfig.for_model(**settings)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if "norm" in key:
                weight.copy_(1 + 0.3 * torch.randn_like(weight))
            elif key.endswith("bias"):
                weight.copy_(0.3 * torch.randn_like(weight))
            else:
                weight.copy_(torch.randn_like(weight) * (1.0 if "embed" in key else 1.5 / weight.shape[1] ** 0.5))
    model = model.to(torch.bfloat16)
    target = folder / name
    model.save_pretrained(target)
    (target / "generation_config.json").unlink(missing_ok=True)
    # As in the checkpoints of today's releases, whose files keep the older names of these fields.
    written = json.loads((target / "config.json").read_text())
    written.pop("rope_parameters", None)
    written |= {"rope_theta": theta, "rope_scaling": rope, "torch_dtype": written.pop("dtype")}
    (target / "config.json").write_text(json.dumps(written, indent=1, sort_keys=True) + "\n")

    # Loaded anew: a cast of the model in memory would also round its rotary frequencies.
    model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32, attn_implementation="eager")
    tokens = torch.randint(0, config.vocab_size, (LENGTH,))
    with torch.no_grad():
        logits = model(tokens[None], use_cache=False).logits[0, ROWS]
        half_kv = model(tokens[None], past_key_values=HalfCache(config=config)).logits[0, ROWS]
    reference = {"made_by": f"transformers {transformers.__version__}, torch {torch.__version__}, fp32",
                 "tokens": tokens.tolist(), "rows": ROWS,
                 "logits": [[round(x, 5) for x in row] for row in logits.tolist()],
                 "logits_half_kv": [[round(x, 5) for x in row] for row in half_kv.tolist()]}
    (target / "reference.json").write_text(json.dumps(reference, separators=(",", ":")) + "\n")
    print(name, "logits from %.2f to %.2f; 16-bit KV changes %.5f"
          % (logits.min(), logits.max(), (half_kv - logits).abs().max()))


folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
for name, changes in MODELS.items():
    make(name, changes, folder)
