"""Models that come and go: what operators order, and what clients never notice. Black-box forms of bug reports from
other servers, with a worker that has room for one of its models at a time."""

import json
import shutil
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

from mesh import BINARY, ROOT, Mesh, wait_until

ANSWERS = {"A-arith": ("A347+085=", "2340"), "A-roman": ("N0247=", "CCXLVII"), "A-date": ("D1999-12-31+001=", None)}
LONG = {"prompt": "A347+085=", "max_tokens": 200, "ignore_eos": True, "temperature": 0, "logit_bias": {"65": 100}}
WAIT_S = 30


def configuration(folder, models=("A-arith", "A-roman"), worker="", lifecycle=""):
    """One worker whose pool holds one of these models and some KV, not two; none is active at first."""
    lines = ["[mesh]", 'log = "info"', "[lifecycle]", lifecycle]
    for model in models:
        path = model if "/" in str(model) else ROOT / "models" / model
        lines += ["[[model]]", f'id = "{path.name if model is path else model}"', f'path = "{path}"']
    lines += ["[[worker]]", 'name = "worker/1"', 'memory = "4MiB"', 'page = "64KiB"', "preload = false",
              'host_memory = "64MiB"', "threads = 1", worker]
    file = folder / "mesh.toml"
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def narrow(tmp_path):
    with Mesh("--config", configuration(tmp_path)) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        yield mesh, http


def complete(http, model, **fields):
    prompt = ANSWERS[model][0]
    return http.post("/v1/completions", json={"model": model, "prompt": prompt, "temperature": 0, **fields})


def text_of(reply):
    assert reply.status_code == 200, reply.text
    return reply.json()["choices"][0]["text"]


def residency(http):
    return {i["model"]: i["residency"] for i in http.get("/admin/models").json()["instances"]}


def expect(http, states):
    """What workers tell the gateway may come a moment after the lifecycle's answer to an order."""
    wait_until(lambda: states.items() <= residency(http).items(), WAIT_S, f"{states}, but {residency(http)}")


def log_count(mesh, event, model):
    return sum(event in line and f"model={model} " in line for line in mesh.log.read_text().splitlines())


def test_a_cold_model_is_listed_and_served_with_the_request_waiting(narrow):
    _, http = narrow
    states = {m["id"]: m["status"] for m in http.get("/v1/models").json()["data"]}
    assert states == {"A-arith": "asleep", "A-roman": "asleep"}
    assert text_of(complete(http, "A-arith")) == ANSWERS["A-arith"][1]
    expect(http, {"A-arith": "active", "A-roman": "cold"})
    assert text_of(complete(http, "A-roman")) == ANSWERS["A-roman"][1]
    expect(http, {"A-arith": "warm", "A-roman": "active"})


def test_a_request_for_another_model_does_not_end_a_running_stream(narrow):
    _, http = narrow
    complete(http, "A-arith", max_tokens=1)
    with http.stream("POST", "/v1/completions", json={"model": "A-arith", "stream": True, **LONG}) as stream:
        lines = stream.iter_lines()
        next(line for line in lines if line.startswith("data: "))
        with ThreadPoolExecutor(1) as other:
            roman = other.submit(complete, http, "A-roman")
            rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
            assert text_of(roman.result(WAIT_S)) == ANSWERS["A-roman"][1]
    finish = [chunk["choices"][0]["finish_reason"] for chunk in rest if chunk["choices"]]
    assert finish[-1] == "length"
    assert 1 + sum(bool(chunk["choices"][0]["text"]) for chunk in rest if chunk["choices"]) == 200


def test_a_model_that_was_just_woken_is_not_taken_away_before_it_has_served(narrow):
    _, http = narrow
    for round_ in range(12):
        first, second = ("A-arith", "A-roman") if round_ % 2 else ("A-roman", "A-arith")
        with ThreadPoolExecutor(2) as clients:
            one = clients.submit(complete, http, first)
            two = clients.submit(complete, http, second)
            assert text_of(one.result(WAIT_S)) == ANSWERS[first][1]
            assert text_of(two.result(WAIT_S)) == ANSWERS[second][1]


def test_clients_that_take_turns_all_finish_and_swaps_stay_bounded(tmp_path):
    file = configuration(tmp_path, lifecycle='dwell = "300ms"')
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        began = time.monotonic()

        def client(number):
            for turn in range(6):
                model = ("A-arith", "A-roman")[(number + turn) % 2]
                assert text_of(complete(http, model)) == ANSWERS[model][1]
            return True

        with ThreadPoolExecutor(6) as clients:
            assert all(clients.map(client, range(6)))
        swaps = log_count(mesh, "worker.moved", "A-arith") + log_count(mesh, "worker.moved", "A-roman")
        # Two moves a swap, one swap a dwell, and the first two wakes.
        assert swaps <= 2 * (time.monotonic() - began) / 0.3 + 4


def test_idle_sleep_counts_from_the_last_token_and_spares_who_generates(tmp_path):
    file = configuration(tmp_path, lifecycle='idle_sleep = "400ms"')
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        end = time.monotonic() + 1.2
        while time.monotonic() < end:  # Longer than the idle time in all, with pauses that are shorter.
            assert complete(http, "A-arith", max_tokens=1).status_code == 200
        assert log_count(mesh, "worker.moved", "A-arith") == 1  # Woken, and never asleep since.
        done = time.monotonic()
        wait_until(lambda: residency(http)["A-arith"] == "warm", WAIT_S, "asleep")
        assert time.monotonic() - done >= 0.3


def test_scrapes_and_probes_neither_wake_nor_keep_awake(tmp_path):
    file = configuration(tmp_path, lifecycle='idle_sleep = "300ms"')
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        complete(http, "A-arith", max_tokens=1)
        paths = ("/metrics", "/readyz", "/health", "/v1/models", "/admin/models", "/admin/memory", "/is_sleeping")

        def asleep():
            assert all(http.get(path).status_code == 200 for path in paths)
            return residency(http) == {"A-arith": "warm", "A-roman": "cold"}

        wait_until(asleep, WAIT_S, "asleep under scrapes")
        assert http.get("/is_sleeping").json() == {"is_sleeping": True}


def test_a_pinned_model_stays_and_the_other_waits(tmp_path):
    file = configuration(tmp_path, lifecycle='pinned = ["A-arith"]\npatience = "200ms"')
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        assert text_of(complete(http, "A-arith")) == "2340"
        moves = log_count(mesh, "worker.moved", "A-arith")
        with pytest.raises(httpx.ReadTimeout):
            http.post("/v1/completions", json={"model": "A-roman", "prompt": "N0247="}, timeout=2)
        assert text_of(complete(http, "A-arith", max_tokens=4, user="someone", keep_alive=0)) == "2340"
        assert log_count(mesh, "worker.moved", "A-arith") == moves
        expect(http, {"A-arith": "active"})


def raw_request(mesh, body):
    """A request on a connection of its own, so that it can be dropped."""
    url = urlsplit(mesh.url)
    connection = socket.create_connection((url.hostname, url.port))
    text = json.dumps(body)
    connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    return connection


def test_a_client_that_leaves_while_its_model_wakes_does_not_stop_the_load(narrow):
    mesh, http = narrow
    raw_request(mesh, {"model": "A-arith", "prompt": "A347+085="}).close()
    assert text_of(complete(http, "A-arith")) == "2340"
    assert log_count(mesh, "worker.moved", "A-arith") == 1


def test_two_wakes_at_once_never_overrun_the_pool(narrow):
    _, http = narrow
    stop = threading.Event()

    def watch():
        with httpx.Client(base_url=http.base_url, timeout=WAIT_S) as other:
            while not stop.is_set():
                for worker in other.get("/admin/memory").json()["workers"]:
                    used = worker["weights_bytes"] + worker["kv_bytes"] + worker["cached_bytes"] + worker["free_bytes"]
                    assert used == worker["pool_bytes"] == 4 << 20
        return True

    with ThreadPoolExecutor(3) as clients:
        watcher = clients.submit(watch)
        one = clients.submit(complete, http, "A-arith")
        two = clients.submit(complete, http, "A-roman")
        assert one.result(WAIT_S).status_code == two.result(WAIT_S).status_code == 200
        stop.set()
        assert watcher.result(WAIT_S)


def test_room_is_made_by_bytes(tmp_path):
    """Three small ones fill the pool; a large one takes as many of their places as it needs, in one go."""
    small = ("B-base", "B-count", "B-date")
    file = configuration(tmp_path, models=(*small, "C-string"), worker="")
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        assert http.post("/admin/wake", json={"models": list(small)}).status_code == 200
        expect(http, dict.fromkeys(small, "active"))
        wait_until(lambda: http.post("/admin/wake", json={"models": ["C-string"]}).status_code == 200, WAIT_S, "woken")
        expect(http, {"C-string": "active"})
        assert [residency(http)[model] for model in small].count("warm") >= 2


def broken_copy(folder):
    shutil.copytree(ROOT / "models" / "A-roman", folder / "broken")
    weights = folder / "broken" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    return folder / "broken"


def test_a_broken_model_fails_fast_cools_down_and_leaves_others_alone(tmp_path):
    broken = broken_copy(tmp_path)
    file = configuration(tmp_path, models=("A-arith", broken))
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        body = {"model": "broken", "prompt": "N0247="}
        first = http.post("/v1/completions", json=body)
        assert first.status_code == 503
        assert first.headers["x-should-retry"] == "false"
        assert "model.safetensors" in first.json()["error"]["message"]
        began = time.monotonic()
        second = http.post("/v1/completions", json=body)
        assert second.status_code == 503 and time.monotonic() - began < 1
        assert 1 <= int(second.headers["retry-after"]) <= 2
        assert log_count(mesh, "worker.move_failed", "broken") == 1  # The second did not try.
        assert text_of(complete(http, "A-arith")) == "2340"
        assert {m["id"]: m["status"] for m in http.get("/v1/models").json()["data"]}["broken"] == "failed"
        wait_until(lambda: http.post("/v1/completions", json=body).status_code == 503
                   and log_count(mesh, "worker.move_failed", "broken") == 2, WAIT_S, "tried again after the cool-down")


def test_a_busy_model_answers_409_or_drains_and_its_request_completes(narrow):
    _, http = narrow
    complete(http, "A-arith", max_tokens=1)
    with http.stream("POST", "/v1/completions", json={"model": "A-arith", "stream": True, **LONG}) as stream:
        lines = stream.iter_lines()
        next(line for line in lines if line.startswith("data: "))
        refused = http.post("/admin/sleep", json={"models": ["A-arith"]})
        assert refused.status_code == 409
        assert "live requests=1" in refused.json()["error"]["message"]
        with ThreadPoolExecutor(1) as other:
            slept = other.submit(http.post, "/sleep?level=1")
            finish = [json.loads(line[6:])["choices"][0]["finish_reason"] for line in lines if line.startswith("data: {")]
            assert slept.result(WAIT_S).status_code == 200
    assert finish[-1] == "length"
    expect(http, {"A-arith": "warm"})
    assert http.post("/wake_up").status_code in (200, 503)  # All of them do not fit at once.


def test_readiness_means_that_requests_are_served(tmp_path):
    command = [BINARY, "up", "--listen", "127.0.0.1:0", "--state", tmp_path / "state", "--config", configuration(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            url = process.stdout.readline().split()[-1]
            with httpx.Client(base_url=url, timeout=WAIT_S) as http:
                wait_until(lambda: http.get("/readyz").status_code == 200, WAIT_S, "ready")
                assert text_of(complete(http, "A-arith")) == "2340"
        finally:
            process.terminate()


def test_the_command_line_shows_and_orders(narrow):
    mesh, http = narrow
    ctl = lambda *words: subprocess.run([BINARY, "ctl", *words, "--url", mesh.url], capture_output=True, text=True)
    woken = ctl("wake", "A-arith", "--pin")
    assert woken.returncode == 0 and "active" in woken.stdout
    listed = ctl("models")
    assert [line.split()[:3] for line in listed.stdout.splitlines()[1:]] == [
        ["A-arith", "worker/1", "active"], ["A-roman", "worker/1", "cold"]]
    memory = json.loads(ctl("memory", "--json").stdout)["workers"][0]
    assert memory["pool_bytes"] == 4 << 20 and memory["models"][0]["model"] == "A-arith"
    unknown = ctl("wake", "nobody")
    assert unknown.returncode != 0 and "nobody" in unknown.stderr
    assert ctl("unload").returncode == 0
    expect(http, {"A-arith": "cold", "A-roman": "cold"})


def test_processes_of_their_own_do_the_same(tmp_path):
    with Mesh("--processes", "--config", configuration(tmp_path)) as mesh, \
            httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        for model in ("A-arith", "A-roman", "A-arith"):
            assert text_of(complete(http, model)) == ANSWERS[model][1]


def test_a_drained_worker_hands_its_streams_to_another_without_losing_a_token(tmp_path):
    lines = ["[mesh]", 'log = "info"', "[[model]]", 'id = "A-arith"', f'path = "{ROOT / "models" / "A-arith"}"']
    for name in ("worker/1", "worker/2"):
        lines += ["[[worker]]", f'name = "{name}"', 'memory = "16MiB"', "threads = 1"]
    file = tmp_path / "mesh.toml"
    file.write_text("\n".join(lines))
    body = {"model": "A-arith", "prompt": "A347+085=", "max_tokens": 200, "ignore_eos": True, "temperature": 1, "seed": 7}
    with Mesh("--config", file) as mesh, httpx.Client(base_url=mesh.url, timeout=WAIT_S) as http:
        wait_until(lambda: [i["residency"] for i in http.get("/admin/models").json()["instances"]] == ["active"] * 2,
                   WAIT_S, "both workers hold the model")
        undisturbed = text_of(http.post("/v1/completions", json=body))
        pieces = []
        with http.stream("POST", "/v1/completions", json={**body, "stream": True}) as stream:
            for line in stream.iter_lines():
                if not line.startswith("data: {"):
                    continue
                pieces.append(json.loads(line[6:])["choices"][0]["text"])
                if len(pieces) == 5:
                    where = [i["worker"] for i in http.get("/admin/models").json()["instances"]]
                    for worker in where[:1]:
                        moved = http.post("/admin/drain", json={"workers": [worker], "at_deadline": "migrate"})
                        assert moved.status_code == 200
        assert "".join(pieces) == undisturbed
