"""`sangam trace` and `sangam replay`: a trace is generated, looked at, and sent to a mesh; every request is accounted for."""

import gzip
import json
import re
import signal
import socket
import subprocess
import urllib.request
from xml.etree import ElementTree

import pytest

from mesh import BINARY, wait_until

REQUESTS = 60
HEADER = "arrival_s,app,input_tokens,output_tokens"
LIMIT_S = 120


def sangam(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False)


def generated(url):
    """Tokens that A-arith has made since the mesh began."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=LIMIT_S) as answer:
        text = answer.read().decode()
    return sum(float(number) for number in re.findall(r'^vllm:generation_tokens_total\{[^}]*model_name="A-arith"[^}]*\} (\S+)$', text, re.M))


@pytest.fixture
def trace(tmp_path):
    """Two apps by turns, forty a second, a few tokens each: fit for the models that ship."""
    lines = [f"{i * 0.025:.3f},{'chat' if i % 3 else 'code'},{8 + i % 16},{1 + i % 5}" for i in range(REQUESTS)]
    path = tmp_path / "small.csv.gz"
    path.write_bytes(gzip.compress("\n".join([HEADER, *lines, ""]).encode()))
    return path


def test_a_generated_day_can_be_shown(tmp_path):
    day = tmp_path / "day.csv.gz"
    made = sangam("trace", "generate", "--w0", "--requests", 5000, "--minutes", 2, "-o", day)
    assert made.returncode == 0, made.stderr
    lines = gzip.decompress(day.read_bytes()).decode().splitlines()
    assert lines[0] == HEADER and len(lines) == 5001
    shown = sangam("trace", "show", day)
    assert shown.returncode == 0 and "5,000 in 120 s" in shown.stdout and "app01" in shown.stdout
    again = tmp_path / "again.csv.gz"
    sangam("trace", "generate", "--w0", "--requests", 5000, "--minutes", 2, "-o", again)
    assert gzip.decompress(again.read_bytes()) == gzip.decompress(day.read_bytes())


def test_a_replay_accounts_for_every_request(url, trace, tmp_path):
    report, picture = tmp_path / "report.json", tmp_path / "report.svg"
    done = sangam("replay", trace, "--url", url, "--models", "chat=A-arith,code=A-roman", "--no-deadlines", "--slo", 100,
                  "--json", report, "--svg", picture)
    assert done.returncode == 0, done.stderr
    figures = json.loads(report.read_text())
    assert figures["failures"] == {}
    assert figures["all"]["requests"] == REQUESTS
    assert figures["all"]["prompt_tokens"] == sum(8 + i % 16 for i in range(REQUESTS))
    assert figures["all"]["answer_tokens"] == sum(1 + i % 5 for i in range(REQUESTS))
    assert figures["all"]["answer_tokens_late"] == 0, done.stdout
    assert 0 < figures["ttft_ms"]["p50"] <= figures["ttft_ms"]["max"]
    assert {app["name"]: app["requests"] for app in figures["apps"]} == {"chat": 40, "code": 20}
    assert sum(window["requests"] for window in figures["windows"]) == REQUESTS
    assert "tokens on time" in done.stdout
    ElementTree.parse(picture)


def test_what_the_mesh_refuses_is_late(url, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(f"{HEADER}\n0,chat,10,2\n0.01,chat,5000,2\n0.02,chat,250,50\n")
    report = tmp_path / "report.json"
    done = sangam("replay", path, "--url", url, "--models", "*=A-arith", "--no-deadlines", "--slo", 100, "--json", report)
    assert done.returncode == 0
    assert "2 of 3 requests do not fit" in done.stderr
    figures = json.loads(report.read_text())
    assert figures["failures"] == {"context_length": 2}
    assert figures["all"]["answer_tokens_late"] == 52


def test_where_nothing_listens_all_is_late(trace, tmp_path):
    with socket.socket() as bound:  # A port that nobody else gets, and that nobody listens on.
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        report = tmp_path / "report.json"
        done = sangam("replay", trace, "--url", f"http://127.0.0.1:{port}", "--models", "*=A-arith", "--json", report)
    assert done.returncode == 5
    assert "nothing was answered, so all is late" in done.stderr and "Connection refused" in done.stderr
    figures = json.loads(report.read_text())
    assert figures["failures"] == {"unavailable": REQUESTS}
    assert figures["all"]["answer_tokens_late"] == figures["all"]["answer_tokens"]


def test_a_replay_that_is_broken_off_reports_what_was_sent(url, tmp_path):
    path = tmp_path / "slow.csv"
    path.write_text("\n".join([HEADER, "0,chat,10,2", "0.01,chat,10,2", "9999,chat,10,2", ""]))
    report = tmp_path / "report.json"
    command = [BINARY, "replay", path, "--url", url, "--models", "*=A-arith", "--no-deadlines", "--slo", "100", "--json", report]
    before = generated(url)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        wait_until(lambda: generated(url) == before + 4, LIMIT_S, "the first two requests have ended")
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0
    assert json.loads(report.read_text())["all"]["requests"] == 2 and "tokens on time" in out


@pytest.mark.parametrize("arguments, what", [
    (["--models", "nobody=A-arith"], "the trace has no app 'nobody'"),
    (["--models", "chat"], "is no APP=MODEL"),
    (["--rate", "0"], "rate"),
    (["--url", "somewhere"], "is no address of a mesh"),
    (["--from", "99"], "no request is left"),
    (["--svg", "/nowhere/report.svg"], "/nowhere/report.svg: cannot be written"),
])
def test_wrong_arguments_are_refused(trace, arguments, what):
    refused = sangam("replay", trace, *arguments)
    assert refused.returncode == 2 and what in refused.stderr


def test_a_malformed_trace_is_refused_with_its_line(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(f"{HEADER}\n0,chat,10,2\n1,chat,ten,2\n")
    refused = sangam("replay", path)
    assert refused.returncode == 2 and f"{path}:3: input_tokens is 'ten'" in refused.stderr
