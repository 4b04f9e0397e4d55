"""The prefix cache as clients see it: fewer tokens computed, the same tokens said, and nobody else's prompts."""

import httpx
import pytest

from mesh import ROOT, Mesh, wait_until

PROMPT = "A" + "123+456=" * 24  # 194 tokens with the one that begins a text.
PAGE_TOKENS = 65536 // 1536  # 64 KiB, 6 layers * 2 * 2 heads * 32 values * 2 bytes
CACHED = len(PROMPT) // PAGE_TOKENS * PAGE_TOKENS  # Whole pages of 194, the last token always computed.
WAIT_S = 30


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    file = tmp_path_factory.mktemp("prefix") / "mesh.toml"
    keys = "".join(f'[[key]]\nkey = "sk-{tenant}"\ntenant = "{tenant}"\n' for tenant in ("one", "two"))
    file.write_text(f'[[model]]\nid = "A-arith"\npath = "{ROOT}/models/A-arith"\n{keys}'
                    '[[worker]]\nname = "worker/1"\nmemory = "16MiB"\npage = "64KiB"\nthreads = 1\n')
    with Mesh("--config", file) as running:
        yield running


def complete(mesh, tenant, prompt):
    body = {"model": "A-arith", "prompt": prompt, "max_tokens": 20, "temperature": 0, "ignore_eos": True, "logprobs": 2}
    reply = httpx.post(f"{mesh.url}/v1/completions", json=body, headers={"authorization": f"Bearer sk-{tenant}"},
                       timeout=WAIT_S)
    assert reply.status_code == 200, reply.text
    choice = reply.json()["choices"][0]
    said = choice["text"], choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]
    return said, reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_a_prompt_that_was_seen_is_not_computed_again_and_says_the_same(mesh):
    cold, nothing = complete(mesh, "one", PROMPT)
    warm, cached = complete(mesh, "one", PROMPT)
    assert nothing == 0
    assert cached == CACHED
    assert warm == cold


def test_only_what_is_common_from_the_first_token_on_is_found(mesh):
    complete(mesh, "one", PROMPT)
    assert complete(mesh, "one", PROMPT[: 2 * PAGE_TOKENS] + "9" * 60)[1] == 2 * PAGE_TOKENS
    assert complete(mesh, "one", "9" + PROMPT)[1] == 0


def test_another_tenant_finds_nothing_of_it(mesh):
    complete(mesh, "one", PROMPT + "77")
    assert complete(mesh, "two", PROMPT + "77")[1] == 0
    assert complete(mesh, "two", PROMPT + "77")[1] == CACHED


def test_metrics_count_what_was_looked_up_and_found(mesh):
    complete(mesh, "one", PROMPT)
    complete(mesh, "one", PROMPT)

    def found():
        text = httpx.get(f"{mesh.url}/metrics", headers={"authorization": "Bearer sk-one"}).text
        lines = [line for line in text.splitlines() if line.startswith("vllm:prefix_cache_hits")]
        return bool(lines) and float(lines[0].split()[-1]) >= CACHED

    wait_until(found, 5, "the hits that workers tell twice a second")
