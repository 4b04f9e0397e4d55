"""Weights that cross hosts: a worker takes a model from workers that it shares no memory with, whether or not it could
read the model itself, and whoever dies meanwhile."""

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from big_model import write_big_model
from mesh import ROOT, wait_until
from nodes import Nodes, without_weights

MODEL = "A-arith"
ROLES = {"front": ["gateway", "queue", "scheduler", "lifecycle"], "one": ["worker/1"], "two": ["worker/2"]}
WAIT_S = 60
# With a temperature, so that the numbers behind the tokens decide, not only the likeliest token.
BODY = {"model": MODEL, "prompt": "A347+085=", "max_tokens": 100, "ignore_eos": True, "temperature": 1, "seed": 7}


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    return write_big_model(tmp_path_factory.mktemp("big") / "model")


def text_of(nodes):
    reply = nodes.http.post("/v1/completions", json=BODY)
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["text"]


def phases(answer):
    assert answer.status_code == 200, answer.text
    return {phase["name"]: phase["moved_bytes"] for phase in answer.json()["orders"][0]["phases"]}


def wake_source(nodes, model, *workers):
    nodes.await_workers("worker/1", "worker/2")
    for worker in workers:
        assert nodes.order("wake", models=[model], workers=[worker]).status_code == 200
    wait_until(lambda: all(nodes.residency(w, model) == "active" for w in workers), WAIT_S, f"active on {workers}")


def opened(nodes, source, reader):
    """How often this reader has begun to read from the source."""
    return nodes.log(source).count(f"bulk.session_opened actor=mesh reader={reader}")


def fork_interrupted(nodes, how):
    """The answer to a fork from node "one" to worker/2, where the source was lost amid the transfer. One that was over
    before the source could be stopped does not count."""
    with ThreadPoolExecutor(1) as other:
        for _ in range(10):
            before = opened(nodes, "one", "two")
            forked = other.submit(nodes.order, "fork", models=["big"], workers=["worker/2"])
            wait_until(lambda: opened(nodes, "one", "two") > before, WAIT_S, "the transfer has begun")
            nodes.kill("one", signal.SIGSTOP)
            answer = forked.result(0.05) if forked.done() else None
            if answer is None or answer.status_code != 200:
                nodes.kill("one", how)
                return forked.result(WAIT_S)
            nodes.kill("one", signal.SIGCONT)
            wait_until(lambda: nodes.order("unload", models=["big"], workers=["worker/2"]).status_code == 200, WAIT_S, "unloaded")
    raise AssertionError("each transfer was over before its source could be stopped")


def weights_of(nodes, worker):
    return nodes.memory(worker)["weights_bytes"]


def test_a_worker_without_the_weights_forks_them_over_the_network_with_the_same_bits(tmp_path):
    bare = {"two": {"models": {MODEL: without_weights(tmp_path, MODEL)}}}
    with Nodes(tmp_path, ROLES, {MODEL: ROOT / "models" / MODEL}, bare) as nodes:
        wake_source(nodes, MODEL, "worker/1")
        expected = text_of(nodes)
        moved = phases(nodes.order("fork", models=[MODEL], workers=["worker/2"]))
        weights = next(i["bytes"]["weights"] for i in nodes.instances() if i["worker"] == "worker/1")
        assert moved["fork"] == weights > 0
        assert "read" not in moved and "copy" not in moved
        assert nodes.order("sleep", workers=["worker/1"]).status_code == 200
        assert text_of(nodes) == expected
        # Woken by demand when it is nowhere active any more, it has to be read, and that cannot be.
        assert nodes.order("unload", workers=["worker/2"]).status_code == 200
        refused = nodes.order("wake", models=[MODEL], workers=["worker/2"])
        assert refused.status_code != 200 and "safetensors" in refused.text
        assert weights_of(nodes, "worker/2") == 0


def test_a_source_that_dies_amid_the_transfer_fails_the_fork_cleanly(tmp_path, big):
    bare = tmp_path / "bare"
    shutil.copytree(big, bare, ignore=shutil.ignore_patterns("*.safetensors"))
    with Nodes(tmp_path, ROLES, {"big": big}, {"two": {"models": {"big": bare}}}) as nodes:
        wake_source(nodes, "big", "worker/1")
        free = nodes.memory("worker/2")["free_bytes"]
        answer = fork_interrupted(nodes, signal.SIGKILL)
        assert answer.status_code == 404, answer.text
        assert "worker/1" in answer.text and "safetensors" in answer.text
        assert nodes.residency("worker/2", "big") == "cold"
        assert weights_of(nodes, "worker/2") == 0
        assert nodes.memory("worker/2")["free_bytes"] == free
        # The source comes back, and the next try has all it needs.
        nodes.processes["one"].wait(WAIT_S)
        nodes.start("one")
        wake_source(nodes, "big", "worker/1")
        wait_until(lambda: nodes.order("fork", models=["big"], workers=["worker/2"]).status_code == 200, WAIT_S, "forked")
        wait_until(lambda: nodes.residency("worker/2", "big") == "active", WAIT_S, "active")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "freezes"])
def test_a_source_that_is_lost_amid_the_transfer_leaves_the_rest_to_storage(tmp_path, big, how):
    with Nodes(tmp_path, ROLES, {"big": big}) as nodes:
        wake_source(nodes, "big", "worker/1")
        moved = phases(fork_interrupted(nodes, how))
        weights = next(i["bytes"]["weights"] for i in nodes.instances() if i["worker"] == "worker/2")
        # What had come of a segment that was not complete is copied again.
        assert moved.get("copy", 0) + moved.get("read", 0) > 0
        assert sum(moved.values()) >= weights
        wait_until(lambda: nodes.residency("worker/2", "big") == "active", WAIT_S, "active")


def test_a_reader_that_freezes_keeps_no_page_of_a_model_that_goes(tmp_path, big):
    with Nodes(tmp_path, ROLES, {"big": big}) as nodes:
        wake_source(nodes, "big", "worker/1")
        free = nodes.memory("worker/1")["free_bytes"]
        with ThreadPoolExecutor(1) as other:
            forked = other.submit(nodes.order, "fork", models=["big"], workers=["worker/2"])
            wait_until(lambda: opened(nodes, "one", "two") > 0, WAIT_S, "the transfer has begun")
            nodes.kill("two", signal.SIGSTOP)
            assert nodes.order("unload", workers=["worker/1"]).status_code == 200
            wait_until(lambda: weights_of(nodes, "worker/1") == 0, WAIT_S, "its pages are free")
            assert nodes.memory("worker/1")["free_bytes"] > free
            nodes.kill("two", signal.SIGCONT)
            forked.result(WAIT_S)  # However that ends: its worker was lost meanwhile.


def test_two_sources_share_the_transfer(tmp_path, big):
    roles = {**ROLES, "three": ["worker/3"]}
    bare = tmp_path / "bare"
    shutil.copytree(big, bare, ignore=shutil.ignore_patterns("*.safetensors"))
    with Nodes(tmp_path, roles, {"big": big}, {"three": {"models": {"big": bare}}}) as nodes:
        nodes.await_workers("worker/3")
        wake_source(nodes, "big", "worker/1", "worker/2")
        moved = phases(nodes.order("fork", models=["big"], workers=["worker/3"]))
        weights = next(i["bytes"]["weights"] for i in nodes.instances() if i["worker"] == "worker/1")
        assert moved["fork"] == weights
        for source in ("one", "two"):
            assert opened(nodes, source, "three") == 1
