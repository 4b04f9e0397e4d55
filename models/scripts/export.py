"""eval sets, HF-style model folders, golden outputs. usage: export.py eval | export.py model FAM TASK|base ..."""
import sys
from common import *
CHAT_TEMPLATE = "{{ bos_token }}{% if messages[-1]['content'] is string %}{{ messages[-1]['content'] }}{% else %}{% for part in messages[-1]['content'] if part['type'] == 'text' %}{{ part['text'] }}{% endfor %}{% endif %}"
torch.set_num_threads(1); OUT = "out/"
def greedy(m, ids, n=24):
    out = []
    with torch.no_grad():
        for _ in range(n):
            lg = m(torch.tensor([ids + out]))[0, -1]; t = int(lg.argmax()); out.append(t)
            if t == EOS: break
    return out
if sys.argv[1] == "eval":
    for t in TASKS:
        a, b = eval_items(t); assert not set(p for p, _ in a) & set(p for p, _ in b)
        for s, it in (("search", a), ("heldout", b)):
            with open(f"{OUT}eval/{t}.{s}.jsonl", "w") as f:
                for p, x in it: f.write(json.dumps({"prompt": p, "answer": x}) + "\n")
else:
    fam = sys.argv[2]
    for task in sys.argv[3:]:
        d = f"{OUT}{fam}-{task}/"; os.makedirs(d, exist_ok=True)
        sd = {k: v for k, v in torch.load(f"work/{fam}-{task}.pt").items()}
        save_safetensors(d + "model.safetensors", sd)
        json.dump(config_json(FAMILY[fam]["cfg"]), open(d + "config.json", "w"), indent=1)
        json.dump(tokenizer_json(), open(d + "tokenizer.json", "w"), ensure_ascii=False, indent=0)
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>", "model_max_length": 256,
                   "add_bos_token": True, "clean_up_tokenization_spaces": False, "chat_template": CHAT_TEMPLATE}, open(d + "tokenizer_config.json", "w"), indent=1)
        json.dump({"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "do_sample": False, "max_new_tokens": 24}, open(d + "generation_config.json", "w"), indent=1)
        m = load_model(d); gold = []
        ts = [task] if task != "base" else FAMILY[fam]["tasks"]
        its = [json.loads(l) for t in ts for l in list(open(f"{OUT}eval/{t}.heldout.jsonl"))[:8 if task != "base" else 4]][:8 if task != "base" else 20]
        for it in its:
            ids = [BOS] + enc(it["prompt"])
            with torch.no_grad(): lg = m(torch.tensor([ids]))[0, -1]
            g = greedy(m, ids)
            gold.append({"prompt": it["prompt"], "answer": it["answer"], "prompt_ids": ids, "greedy_ids": g, "greedy_text": dec(g), "first_logits": [round(float(v), 6) for v in lg]})
        json.dump({"dtype": "bf16 weights, fp32 arithmetic", "items": gold}, open(d + "golden.json", "w"))
        print(fam, task, os.path.getsize(d + "model.safetensors"), "golden greedy ok", sum(g["greedy_text"] == g["answer"] for g in gold), "/", len(gold))
