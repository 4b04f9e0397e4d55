"""Predictions of first tokens as clients see them: the header of an answer, the endpoint, the metrics."""

import os
import re
import signal

import httpx
import pytest

from mesh import ROOT, Mesh

WAIT_S = 60
LEARNED = 19  # First tokens after which nine in ten can be promised.
ASKED_AFTER = 30


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    file = tmp_path_factory.mktemp("quotes") / "mesh.toml"
    file.write_text(f'[[model]]\nid = "A-arith"\npath = "{ROOT}/models/A-arith"\n'
                    '[[worker]]\nname = "worker/1"\nmemory = "16MiB"\nthreads = 1\n')
    with Mesh("--processes", "--config", file) as running:
        yield running


def complete(mesh, index):
    body = {"model": "A-arith", "prompt": f"{index}+{index}=", "max_tokens": 20, "ignore_eos": True}
    reply = httpx.post(f"{mesh.url}/v1/completions", json=body, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text
    return reply


def ask(mesh, headers=None, **fields):
    body = {"model": "A-arith", "prompt": "1+1=", "max_tokens": 20, **fields}
    return httpx.post(f"{mesh.url}/v1/deadline/quote", json=body, headers=headers or {}, timeout=WAIT_S)


def series(mesh, name):
    """The sum of a metric over all its labels."""
    lines = httpx.get(f"{mesh.url}/metrics", timeout=WAIT_S).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}[{{ ]", line))


def test_before_anything_was_seen_nothing_is_promised_and_afterwards_it_is(mesh):
    before = ask(mesh)
    assert before.status_code == 200, before.text
    assert before.json() == {"object": "deadline.quote", "model": "A-arith", "class": "normal", "prompt_tokens": 5,
                             "earliest_ms": None, "latest_ms": None, "coverage": 0.9, "feasible": True,
                             "feasible_in_ms": 0}
    replies = [complete(mesh, index) for index in range(ASKED_AFTER)]
    quoted = [reply.headers for reply in replies if "x-sangam-ttft-latest-ms" in reply.headers]
    assert 0 < len(quoted) <= ASKED_AFTER - LEARNED
    assert all(0 <= int(h["x-sangam-ttft-earliest-ms"]) <= int(h["x-sangam-ttft-latest-ms"]) for h in quoted)
    assert series(mesh, "sangam_ttft_quotes_total") == len(quoted)
    assert series(mesh, "sangam_ttft_quote_width_seconds_count") == len(quoted)

    after = ask(mesh).json()
    assert 0 <= after["earliest_ms"] <= after["latest_ms"]
    assert after["feasible"] and after["feasible_in_ms"] == 0


def test_a_question_costs_no_request(mesh):
    before = series(mesh, "vllm:prompt_tokens_total")
    for _ in range(5):
        assert ask(mesh, {"x-slo-ttft-ms": "60000"}).json()["class"] == "deadline"
    assert series(mesh, "vllm:prompt_tokens_total") == before


def test_a_question_that_makes_no_sense_is_an_error(mesh):
    assert ask(mesh, model="nobody").status_code == 404
    assert ask(mesh, prompt=None).status_code == 400
    assert ask(mesh, {"x-slo-ttft-ms": "soon"}).status_code == 400


def test_a_scheduler_that_does_not_answer_gives_503_in_bounded_time(mesh):
    scheduler = mesh.pid_of("scheduler")
    assert scheduler is not None
    os.kill(scheduler, signal.SIGSTOP)
    try:
        reply = ask(mesh)
    finally:
        os.kill(scheduler, signal.SIGCONT)
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "service_unavailable"
