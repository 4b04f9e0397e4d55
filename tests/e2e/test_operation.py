"""What operators rely on: probes, metrics, disconnects, load."""

import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import openai

MODEL = "A-arith"
LONG = {"model": MODEL, "prompt": "A347+085=", "max_tokens": 200, "ignore_eos": True, "temperature": 1}


def metric(http, name, **labels):
    """The value of one series; 0 where it is not there."""
    for line in http.get("/metrics").text.splitlines():
        found = re.match(r"(\S+?)\{(.*)\} (\S+)$", line)
        if found and found[1] == name and all(f'{key}="{value}"' in found[2] for key, value in labels.items()):
            return float(found[3])
    return 0.0


def settles(condition, seconds=10):
    """Whether `condition` becomes true in time; it is polled, since a scrape is all that a dashboard has."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_probes_answer_without_a_model(http):
    for path in ("/health", "/v1/health", "/ping", "/livez", "/readyz"):
        assert http.get(path).status_code == 200
    assert http.post("/ping").status_code == 200
    assert http.get("/version").json()["version"]
    assert http.get("/load").json()["server_load"] >= 0
    assert http.head("/").status_code == 200


def test_unknown_paths_and_methods_are_json(http):
    missing = http.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_url")
    wrong = http.get("/v1/completions")
    assert wrong.status_code == 405 and "POST" in wrong.headers["allow"]


def test_metrics_count_what_was_generated(http, client):
    before = metric(http, "vllm:generation_tokens_total", model_name=MODEL)
    client.completions.create(model=MODEL, prompt="A347+085=")
    assert metric(http, "vllm:generation_tokens_total", model_name=MODEL) == before + 4
    assert metric(http, "vllm:request_success_total", model_name=MODEL, finished_reason="stop") >= 1
    assert metric(http, "vllm:time_to_first_token_seconds_count", model_name=MODEL) >= 1


def test_a_client_that_leaves_a_stream_stops_the_work(http, client):
    aborted = metric(http, "vllm:request_success_total", model_name=MODEL, finished_reason="abort")
    stream = client.completions.create(stream=True, **{k: v for k, v in LONG.items() if k != "ignore_eos"},
                                       extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    assert settles(lambda: metric(http, "vllm:request_success_total", model_name=MODEL,
                                  finished_reason="abort") == aborted + 1)
    assert settles(lambda: http.get("/load").json()["server_load"] == 0)
    assert settles(lambda: metric(http, "vllm:num_requests_running", model_name=MODEL) == 0)


def test_a_client_that_leaves_before_a_whole_answer_stops_the_work(http, url):
    import json
    aborted = metric(http, "vllm:request_success_total", model_name=MODEL, finished_reason="abort")
    body = json.dumps({**LONG, "n": 16}).encode()
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port)) as raw:
        raw.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert settles(lambda: http.get("/load").json()["server_load"] == 1)
    assert settles(lambda: http.get("/load").json()["server_load"] == 0)
    assert settles(lambda: metric(http, "vllm:request_success_total", model_name=MODEL, finished_reason="abort") > aborted)


def test_fifty_streams_at_once_are_each_right(client):
    numbers = [(i * 17 % 900, i * 31 % 99) for i in range(50)]

    def ask(pair):
        chunks = client.completions.create(model=MODEL, prompt=f"A{pair[0]:03d}+{pair[1]:03d}=", stream=True)
        return "".join(chunk.choices[0].text for chunk in chunks)

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, numbers))
    right = sum(answer == f"{a + b:04d}"[::-1] for answer, (a, b) in zip(answers, numbers))
    assert right == len(numbers)


def test_models_answer_side_by_side(client):
    tasks = {"A-arith": ("A347+085=", "2340"), "B-count": ("Cxnxx?xn=", "31x"), "A-roman": ("N0247=", "CCXLVII"),
             "C-fecha": ("D40-12-14+4=", "14Abr41")}

    def ask(name):
        return client.completions.create(model=name, prompt=tasks[name][0]).choices[0].text == tasks[name][1]

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, list(tasks) * 8))


def test_listing_models_is_quick_while_others_generate(http, client):
    def generate(_):
        return client.completions.create(**{k: v for k, v in LONG.items() if k != "ignore_eos"},
                                         extra_body={"ignore_eos": True})

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(generate, i) for i in range(8)]
        times = []
        while not all(task.done() for task in running) and len(times) < 500:
            began = time.monotonic()
            assert http.get("/v1/models").status_code == 200
            times.append(time.monotonic() - began)
        for task in running:
            task.result()
    assert sorted(times)[int(len(times) * 0.99)] < 0.25  # A stall would be seconds; this machine may be busy.


def test_an_impossible_deadline_is_refused_truthfully_and_a_wide_one_is_met(url):
    fussy = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    reply = fussy.completions.create(model=MODEL, prompt="A347+085=", extra_headers={"x-slo-ttft-ms": "30000"})
    assert reply.choices[0].text == "2340"
    assert reply.model_extra["service_tier"] == "priority"
    flex = fussy.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "A347+085="}], service_tier="flex")
    assert flex.service_tier == "flex"
