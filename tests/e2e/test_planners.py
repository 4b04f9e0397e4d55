"""Oracle, placement and autoscaler in a running mesh: their plans bring models up and let them go, and what serves goes
on serving whoever dies."""

import json
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx

from mesh import ROOT, Mesh, wait_until

ANSWERS = {"A-arith": ("A347+085=", "2340"), "A-roman": ("N0247=", "CCXLVII")}
LONG = {"prompt": "A347+085=", "max_tokens": 200, "ignore_eos": True, "temperature": 0, "logit_bias": {"65": 100}}
PLANNERS = ("oracle", "placement", "autoscaler")
WAIT_S = 60


def configuration(folder, placement="", autoscaler=""):
    """Two workers with room for all models, of which none is active at first; planners that are quick to decide."""
    file = folder / "mesh.toml"
    file.write_text(f"""
[mesh]
log = "info"
[pool]
folder = "{ROOT / 'models'}"
[lifecycle]
dwell = "300ms"
[oracle]
every = "200ms"
[placement]
settle = "500ms"
interval = "2s"
{placement}
[autoscaler]
period = "200ms"
{autoscaler}
[[worker]]
name = "worker/1"
memory = "128MiB"
preload = false
threads = 1
[[worker]]
name = "worker/2"
memory = "128MiB"
preload = false
threads = 1
""")
    return file


def complete(http, model):
    reply = http.post("/v1/completions", json={"model": model, "prompt": ANSWERS[model][0], "temperature": 0})
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["text"]


def active_on(http, model):
    return {i["worker"] for i in http.get("/admin/models").json()["instances"]
            if i["model"] == model and i["residency"] == "active"}


def foreseen(http, series, model):
    found = re.search(rf'^sangam_forecast_{series}{{.*model_name="{model}".*}} (\S+)$', http.get("/metrics").text, re.M)
    return float(found.group(1))


class Load:
    """Clients that ask for a model without pause, and its answers, which must be right."""

    def __init__(self, url, model, clients):
        self.url, self.model, self.clients, self.over = url, model, clients, threading.Event()

    def client(self, _):
        with httpx.Client(base_url=self.url, timeout=WAIT_S) as http:
            while not self.over.is_set():
                assert complete(http, self.model) == ANSWERS[self.model][1]

    def __enter__(self):
        self.pool = ThreadPoolExecutor(self.clients)
        self.running = [self.pool.submit(self.client, number) for number in range(self.clients)]
        return self

    def __exit__(self, *_):
        self.over.set()
        self.pool.shutdown()
        for client in self.running:
            client.result()


def kill(mesh, role):
    former = mesh.pid_of(role)
    os.kill(former, signal.SIGKILL)
    wait_until(lambda: mesh.pid_of(role) not in (None, former), WAIT_S, f"{role} is back")


def test_the_autoscaler_brings_a_busy_model_up_on_both_workers_and_lets_it_go_when_it_is_idle(tmp_path):
    # By itself the lifecycle makes a wanted model active on one worker only, and lets none go that has room.
    file = configuration(tmp_path, placement='enter_dwell = "1h"',
                         autoscaler='policy = "per_app"\nper_app_ongoing = 2\nhold = "1s"\nidle_to_zero = "2s"')
    with Mesh("--processes", "--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        assert complete(http, "A-roman") == ANSWERS["A-roman"][1]
        with Load(mesh.url, "A-arith", 4):
            wait_until(lambda: active_on(http, "A-arith") == {"worker/1", "worker/2"}, WAIT_S, "up on both")
            wait_until(lambda: foreseen(http, "requests_per_second", "A-arith") > 0, WAIT_S, "foreseen")
            kill(mesh, "worker/2")
            wait_until(lambda: active_on(http, "A-arith") == {"worker/1", "worker/2"}, WAIT_S, "up again on both")
        wait_until(lambda: not active_on(http, "A-arith"), WAIT_S, "let go")
        assert complete(http, "A-arith") == ANSWERS["A-arith"][1]


def planned(mesh, count):
    """Plans of the placement with so many models."""
    return [line for line in mesh.log.read_text().splitlines() if "placement.planned" in line and f" models={count} " in line]


def test_even_models_get_a_place_and_whoever_dies_is_survived(tmp_path):
    file = configuration(tmp_path, placement='enter_dwell = "1s"\nattainment_enter = 0.01\nattainment_leave = 0.01\n'
                                             "volatility_enter = 1000.0\nvolatility_leave = 1000.0\nsize_enter = 100.0\n"
                                             "size_leave = 100.0\nbusy_max = 1.0\ndeviations = 0.0")
    with Mesh("--processes", "--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        with Load(mesh.url, "A-arith", 1), Load(mesh.url, "A-roman", 1):
            wait_until(lambda: planned(mesh, 2), WAIT_S, "both have a place")
            for role in ("worker/1", "worker/2", *PLANNERS):
                kill(mesh, role)
            before = len(planned(mesh, 2))
            wait_until(lambda: len(planned(mesh, 2)) > before, WAIT_S, "planned by the new ones")


def test_a_stream_outlives_the_worker_and_the_planners(tmp_path):
    with Mesh("--processes", "--config", configuration(tmp_path)) as mesh, \
            httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        with http.stream("POST", "/v1/completions", json={"model": "A-arith", "stream": True, **LONG}) as stream:
            lines = stream.iter_lines()
            next(line for line in lines if line.startswith("data: "))
            with httpx.Client(base_url=mesh.url, timeout=WAIT_S) as other:
                for role in (*active_on(other, "A-arith"), *PLANNERS):
                    kill(mesh, role)
            rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert rest[-1]["choices"][0]["finish_reason"] == "length"
        assert 1 + sum(bool(chunk["choices"][0]["text"]) for chunk in rest if chunk["choices"]) == 200
