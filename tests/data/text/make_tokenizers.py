#!/usr/bin/env python3
"""Writes the small tokenizers of this folder and what the `tokenizers` library says about them.

Needs `pip install tokenizers`. Run it in this folder; it is deterministic for one version of the library.
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
SEED = 20240607

TEXTS = [
    "Hello, world! It's 12345 o'clock; we'LL go, won't we?\n",
    "The scheduler plans early, and the worker answers late; nobody minds the queue.",
    "日本語のテキスト、漢字とかな。中文分词测试,你好世界!\n",
    "مرحبا بالعالم، هذا نص عربي ١٢٣ قصير",
    "नमस्ते दुनिया, यह हिन्दी का वाक्य है १२३।",
    "👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👍🏽 and more emoji 🎉🎉",
    "e\u0301 a\u0308 o\u0302\u0323 \u212b ﬁ ① ™ ½ \u1e9b\u0323 combining",
    "def f(x):\n    return {'a': [1, 2, 3]}  # comment\n\tif (x != 0) { y += x->z; }\r\n",
    "   leading     spaces      \t\t\t\n\n\n   \n end ",
    "a\x00b\x01\x1f\x7f\u0085\u00a0\u2003\u200b\u180e x\u2028y\u2029z\ufeff",
    "Ünïcödé Ελληνικά ΣΑΣ Кириллица ß ſ ŉ İ ı \u212a",
    "don't DON'T I'VE we're'S 'ſ 'Re 'RE they'd",
    "가나다 한국어 텍스트 ᄀ\u1161",
    "ไทย ภาษา ខ្មែរ Việt Nam",
    "𝕳𝖊𝖑𝖑𝖔 𐍈 🀄 \U0010ffff",
    "a_b__c --- === *** #### ...,,,!!! $$$ @@ ~~ `` \\\\ // ▁▁ low",
    "1234567 3.14159 1e-10 0xDEADBEEF ²³ Ⅷ ٣ 12",
    "camelCase HTTPServer parseXMLDocument iPhone McDonald ALLCAPS lower",
    "",
    " ",
    "\n",
    "x" * 100,
    "ab" * 40 + " " * 37 + "ba" * 33,
]
# Scripts that no vocabulary has seen: their characters fall back to bytes, or are unknown.
TRAINING = [t for t in TEXTS if not any(c in t for c in "가ไ𝕳नΕ①")]
BROKEN = [b"\xff", b"ab\xc3", b"\xe2\x82", b"\xe2\x82\xac\xe2\x82x", b"\xf0\x9f\x98 \xf0\x9f\x98\x80", b"\xc0\x80",
          b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80\x80", b"\xf0\x80\x80\x80 end", b"\xe0\x9f\xbf!"]

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SINGLE_DIGITS = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
CASES = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def random_texts(count, seed):
    rng = random.Random(seed)
    letters = [c for text in TEXTS for c in text] + list("   \n\t'e\u0301\u0327<|>")
    return ["".join(rng.choice(letters) for _ in range(rng.randrange(1, 40))) for _ in range(count)]


def byte_level(regex, normalizer=None, size=480, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(TRAINING * 2, trainer)
    return tokenizer


def sentence_pieces(size=700):
    """A vocabulary with the 256 byte tokens in front, as SentencePiece makes them."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                  max_token_length=12)
    tokenizer.train_from_iterator(TRAINING * 2, trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return tokenizer


def frame(tokenizer, before, after=""):
    specials = [(t, tokenizer.token_to_id(t)) for t in [before, after] if t]
    return processors.TemplateProcessing(single=f"{before} $A {after}".strip(), special_tokens=specials)


def llama3():
    tokenizer = byte_level(CL100K, ignore_merges=True)
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>"])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), frame(tokenizer, "<|begin_of_text|>")])
    return tokenizer, {"bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|eot_id|>", "lstrip": False}}


def qwen2():
    tokenizer = byte_level(SINGLE_DIGITS, normalizer=normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<think>", special=False, normalized=False),
                          AddedToken("</think>", special=False, normalized=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer, {"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


def tekken():
    tokenizer = byte_level(CASES, ignore_merges=True)
    tokenizer.add_special_tokens(["<s>", "</s>", "[INST]", "[/INST]"])
    tokenizer.post_processor = frame(tokenizer, "<s>", "</s>")
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>"}


def llama2():
    tokenizer = sentence_pieces()
    tokenizer.post_processor = frame(tokenizer, "<s>")
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def mistral():
    tokenizer = sentence_pieces()
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.add_special_tokens(["[INST]", "[/INST]"])
    tokenizer.post_processor = frame(tokenizer, "<s>")
    return tokenizer, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(TRAINING * 2, trainer)
    tokenizer.add_tokens([
        AddedToken("[MASK]", lstrip=True, special=True, normalized=False),
        AddedToken("[TAIL]", rstrip=True, special=True, normalized=False),
        AddedToken("word", single_word=True, special=False, normalized=False),
        AddedToken("[M", special=False, normalized=True)])
    return tokenizer, {}


ADDED_TEXTS = {
    "gpt2": ["a  [MASK] b", "a [TAIL]   b[TAIL]", "a word, words; swordfish word", "word", "[M [MA [MASK][MASK]  [TAIL] [MASK]"],
    "qwen2": ["<|im_start|>user\nhi<|im_end|>\n<think>\n\n</think>", "<|im_start|<|im_end|>|>", "<think<think>>"],
    "llama3": ["<|begin_of_text|><|start_header_id|>user", " <|eot_id|> ", "<|eot_id|"],
    "tekken": ["[INST] hi [/INST]", "<s></s> <s>", "[INST"],
    "llama2": ["<s>[INST] hi [/INST]</s>", "</s> a", "<s> <s>  b", "▁▁ a ▁b", "<0x41>"],
    "mistral": ["[INST] hi [/INST]", " a[INST] b", "[INST]c", "▁a", "<0x41> b", "<s>x"],
}


def half_valid(tokenizer, ids):
    """Whether a run of byte tokens is ill-formed but holds a whole character (there we keep the character)."""
    run, runs = b"", []
    for token in [tokenizer.id_to_token(i) or "" for i in ids] + [""]:
        if len(token) == 6 and token.startswith("<0x"):
            run += bytes([int(token[3:5], 16)])
        else:
            runs.append(run)
            run = b""
    return any(r.decode("utf-8", "replace").count("\ufffd") and r.decode("utf-8", "ignore") for r in runs)


def encodings(tokenizer, texts):
    return [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids,
             "framed": tokenizer.encode(t).ids} for t in texts]


def decodings(tokenizer, count, seed):
    rng = random.Random(seed)
    size = tokenizer.get_vocab_size()
    cases = []
    while len(cases) < count:
        low = rng.choice([0, 0, size - 12, 3, 250])
        ids = [rng.randrange(low, min(size, low + rng.choice([12, 256, size]))) for _ in range(rng.randrange(1, 12))]
        if half_valid(tokenizer, ids):
            continue
        cases.append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False),
                      "plain": tokenizer.decode(ids, skip_special_tokens=True)})
    return cases


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def old_merges(state):
    state["model"]["merges"] = [" ".join(pair) for pair in state["model"]["merges"]]
    return state


def write_tokenizer(name, make):
    tokenizer, config = make()
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    state = json.loads(tokenizer.to_str())
    write(folder / "tokenizer.json", old_merges(state) if name in ("gpt2", "llama3") else state)
    write(folder / "tokenizer_config.json", config)
    texts = TEXTS + ADDED_TEXTS[name] + random_texts(15, SEED)
    broken = [{"hex": b.hex(), "ids": tokenizer.encode(b.decode("utf-8", "replace"), add_special_tokens=False).ids}
              for b in BROKEN]
    write(folder / "cases.json", {"encode": encodings(tokenizer, texts), "broken": broken,
                                  "decode": decodings(tokenizer, 25, SEED + 1)})


def patches():
    """Components in isolation, put into one tokenizer whose merges cross blanks, digits and signs."""
    for form in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"]:
        yield form, {"normalizer": {"type": form}}
    yield "strip", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": True}}
    yield "strip left", {"normalizer": {"type": "Strip", "strip_left": True, "strip_right": False}}
    yield "normalizer sequence", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Strip", "strip_left": False, "strip_right": True}, {"type": "NFKC"}, {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "A"},
        {"type": "Replace", "pattern": {"String": "."}, "content": "!"}, {"type": "Prepend", "prepend": "x"}]}}
    for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for invert in [False, True]:
            yield f"split regex {behavior} {invert}", {"pre_tokenizer": {
                "type": "Split", "pattern": {"Regex": "[a-f]|\\s|\\d\\w"}, "behavior": behavior, "invert": invert}}
        yield f"split string {behavior}", {"pre_tokenizer": {
            "type": "Split", "pattern": {"String": " "}, "behavior": behavior, "invert": False}}
        yield f"punctuation {behavior}", {"pre_tokenizer": {"type": "Punctuation", "behavior": behavior}}
    for regex in ["\\s+", "\\S+", "\\w+", "\\W", "\\h+", "[^\\s\\w]+", "[\\S]", "x*", "^.", ".$", "(?i:k|s)", "(?<=a)b|\\bt",
                  "[[:punct:]]", "\\p{Han}+", "\\d", "[]x]"]:
        yield f"split by {regex}", {"pre_tokenizer": {
            "type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}}
    for individual in [False, True]:
        yield f"digits {individual}", {"pre_tokenizer": {"type": "Digits", "individual_digits": individual}}
    for scheme in ["always", "first", "never"]:
        for split in [False, True]:
            yield f"metaspace {scheme} {split}", {
                "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split},
                "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}}
    yield "whitespace", {"pre_tokenizer": {"type": "Whitespace"}}
    yield "whitespace split", {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    yield "pre-tokenizer sequence", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]}}
    yield "no decoder", {"decoder": None}
    yield "strip each token", {"decoder": {"type": "Sequence", "decoders": [
        {"type": "Strip", "content": "e", "start": 1, "stop": 1}, {"type": "Fuse"}]}}
    yield "strip the text", {"decoder": {"type": "Sequence", "decoders": [
        {"type": "Fuse"}, {"type": "Strip", "content": "e", "start": 2, "stop": 0}]}}
    yield "unknown tokens", {"model.unk_token": "e"}
    yield "fused unknown tokens", {"model.unk_token": "e", "model.fuse_unk": True}


def component_base():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.decoder = decoders.Fuse()
    trainer = trainers.BpeTrainer(vocab_size=600, show_progress=False, max_token_length=6)
    tokenizer.train_from_iterator(TRAINING + [t.replace(" ", "▁") for t in TRAINING], trainer)
    tokenizer.add_special_tokens(["<s>"])
    return tokenizer


def write_components():
    base = json.loads(component_base().to_str())
    texts = TEXTS[:19:2] + ["<s> a<s>b  c", "  pad  ", "a1b22 c333"] + random_texts(4, SEED)
    cases = []
    for name, patch in patches():
        state = json.loads(json.dumps(base))
        for key, value in patch.items():
            *path, last = key.split(".")
            (state[path[0]] if path else state)[last] = value
        tokenizer = Tokenizer.from_str(json.dumps(state))
        decode = decodings(tokenizer, 6, name) if "decoder" in patch else []
        cases.append({"name": name, "patch": patch, "decode": decode,
                      "ids": [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]})
    folder = HERE / "components"
    folder.mkdir(exist_ok=True)
    write(folder / "tokenizer.json", base)
    write(folder / "cases.json", {"texts": texts, "patches": cases})


def main():
    for make in [llama3, qwen2, tekken, llama2, mistral, gpt2]:
        write_tokenizer(make.__name__, make)
    write_components()


if __name__ == "__main__":
    main()
