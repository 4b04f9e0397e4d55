"""Prompts on one worker, decodes on another: the bits of a mixed worker, whoever leaves or dies at whatever moment."""

import http.client
import json
import os
import signal
import threading
import urllib.request
from urllib.parse import urlparse

import pytest

from mesh import ROOT, Mesh, wait_until
from test_failover import STREAMS, TOKENS, run_all

MODEL = "A-date"
ROLES = ("--processes", "--config", str(ROOT / "configs" / "prefill_decode.toml"))
MIXED = ("--processes", "--config", str(ROOT / "configs" / "two_workers.toml"))


@pytest.fixture(scope="module")
def expected():
    """What a worker that does all of a run says."""
    with Mesh(*MIXED) as mesh:
        answers = run_all(mesh.url, MODEL)
    assert all(len(tokens) == TOKENS and finish == "length" for tokens, finish in answers)
    return answers


def get(mesh, path):
    with urllib.request.urlopen(mesh.url + path, timeout=10) as answer:
        return answer.read().decode()


def both_serve(mesh):
    """Both workers hold the model."""
    instances = json.loads(get(mesh, "/admin/models"))["instances"]
    return sum(i["model"] == MODEL and i["residency"] == "active" for i in instances) == 2


def no_page_is_held(mesh):
    memory = json.loads(get(mesh, "/admin/memory"))
    return len(memory["workers"]) == 2 and all(worker["kv_bytes"] == 0 for worker in memory["workers"])


@pytest.fixture(scope="module")
def running():
    with Mesh("--log", "debug", *ROLES) as mesh:
        yield mesh


@pytest.fixture
def mesh(running):
    wait_until(lambda: both_serve(running), 60, "both workers serve")
    return running


def test_the_bits_are_those_of_a_mixed_worker(mesh, expected):
    before = mesh.log.read_text().count("worker.took_over")
    assert run_all(mesh.url, MODEL) == expected
    wait_until(lambda: mesh.log.read_text().count("worker.took_over") == before + STREAMS, 10, "each run was handed over")
    wait_until(lambda: no_page_is_held(mesh), 10, "all pages are given back")
    assert mesh.log.read_text().count("in_advance=yes") >= STREAMS // 2  # The rest may have found no place yet.
    counted = [line for line in get(mesh, "/metrics").splitlines() if line.startswith("sangam_self_decodes_total")]
    assert any(MODEL in line for line in counted), counted


@pytest.mark.parametrize("worker", ["worker/1", "worker/2"])
@pytest.mark.parametrize("tokens", [1, STREAMS // 2, STREAMS * 20], ids=["first", "amid prompts", "amid decodes"])
def test_no_stream_is_lost_when_either_is_killed(mesh, expected, worker, tokens):
    lock, seen, killed = threading.Lock(), [0], []

    def on_token():
        with lock:
            seen[0] += 1
            if seen[0] == tokens:
                killed.append(mesh.pid_of(worker))
                os.kill(killed[0], signal.SIGKILL)

    assert run_all(mesh.url, MODEL, on_token) == expected
    wait_until(lambda: mesh.pid_of(worker) not in (None, *killed), 20, "it is started again")
    wait_until(lambda: no_page_is_held(mesh), 20, "all pages are given back")


def test_clients_that_leave_at_any_moment_leave_no_page(mesh, expected):
    address = urlparse(mesh.url)
    for step in range(40):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        body = {"model": MODEL, "prompt": f"D40-12-{10 + step % 20}+{step % 9}=" * 8, "max_tokens": 150,
                "ignore_eos": True, "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        if step > 0:  # 0: it leaves before there is an answer.
            answer = connection.getresponse()
            assert answer.status == 200
            for _ in range(step - 1):
                answer.readline()
            answer.close()
        connection.close()
    assert run_all(mesh.url, MODEL) == expected
    wait_until(lambda: no_page_is_held(mesh), 20, "all pages are given back")
