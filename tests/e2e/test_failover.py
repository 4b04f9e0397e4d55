"""A worker is killed while it streams: no stream is lost, and each goes on with the bits it would have had."""

import concurrent.futures
import json
import os
import signal
import threading
import urllib.request

import pytest

from mesh import ROOT, Mesh, wait_until

STREAMS = 50
TOKENS = 180
KILL_AFTER = STREAMS * 20  # Tokens over all streams: all have begun, none has ended.


def body_of(index, model):
    """Half of the streams greedy, half sampled with a seed of their own; none ends by itself."""
    return {"model": model, "prompt": f"D40-12-{10 + index % 20}+{index % 9}=", "max_tokens": TOKENS,
            "temperature": 0.0 if index % 2 else 1.0, "seed": 1000 + index, "ignore_eos": True,
            "logprobs": 0, "stream": True}


def stream(url, body, on_token):
    """The tokens and the finish reason of one completion, as a plain HTTP client sees them."""
    request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    tokens, finish = [], None
    with urllib.request.urlopen(request, timeout=120) as answer:
        for line in answer:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            chunk = json.loads(line[6:])
            assert "error" not in chunk, chunk
            for choice in chunk["choices"]:
                got = list(zip(choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"])) if choice["logprobs"] else []
                tokens += got
                finish = choice["finish_reason"] or finish
                for _ in got:
                    on_token()
    return tokens, finish


def run_all(url, model, on_token=lambda: None):
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
        return list(pool.map(lambda index: stream(url, body_of(index, model), on_token), range(STREAMS)))


class KillOnce:
    """Kills the worker with SIGKILL when so many tokens have come."""

    def __init__(self, mesh, role):
        self.mesh, self.role = mesh, role
        self.lock, self.tokens, self.killed = threading.Lock(), 0, None

    def __call__(self):
        with self.lock:
            self.tokens += 1
            if self.tokens == KILL_AFTER:
                self.killed = self.mesh.pid_of(self.role)
                os.kill(self.killed, signal.SIGKILL)


@pytest.mark.parametrize("arguments", [("--config", str(ROOT / "configs" / "two_workers.toml")), ()],
                         ids=["another worker holds the model", "the only worker comes back"])
def test_no_stream_is_lost_when_a_worker_is_killed(arguments):
    with Mesh("--processes", *arguments) as mesh:
        expected = run_all(mesh.url, "A-date")
        assert all(len(tokens) == TOKENS and finish == "length" for tokens, finish in expected)
        kill = KillOnce(mesh, "worker/1")
        got = run_all(mesh.url, "A-date", kill)
        assert kill.killed is not None
        assert got == expected
        wait_until(lambda: mesh.pid_of("worker/1") not in (None, kill.killed), 20, "the worker is started again")
