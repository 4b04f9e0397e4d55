"""`sangam profile`: a running mesh is measured, and oracle and simulator take what was measured."""

import json
import subprocess

import httpx
import pytest

from mesh import BINARY, ROOT, Mesh, wait_until

LIMIT_S = 300
MODEL = f'[[model]]\nid = "A-arith"\npath = "{ROOT}/models/A-arith"\n'
WORKER = '[[worker]]\nname = "worker/1"\nmemory = "16MiB"\nthreads = 1\n'


def sangam(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def profile(folder):
    """Of A-arith, measured on a mesh without an oracle."""
    file = folder / "mesh.toml"
    file.write_text(MODEL + WORKER)
    with Mesh("--config", file) as mesh:
        done = sangam("profile", "A-arith", "--url", mesh.url, "--store", folder / "profiles", "--rounds", 2, "--streams", 4)
        assert done.returncode == 0, done.stderr
        assert "A-arith" in done.stdout
        unknown = sangam("profile", "A-arit", "--url", mesh.url, "--store", folder / "none")
        assert unknown.returncode == 2
        assert "it has A-arith" in unknown.stderr
    return json.loads((folder / "profiles" / "A-arith.json").read_text())


def test_a_profile_has_costs_and_the_samples_that_they_are_from(profile):
    assert profile["model"] == "A-arith"
    assert profile["kv_bytes_per_token"] == 6 * 2 * 2 * 32 * 2  # Layers, keys and values, heads, their size, bytes.
    costs = profile["costs"]
    assert costs["step_us"]["value"] + costs["sequence_us"]["value"] > 1
    assert costs["prompt_token_us"]["low"] > 0
    # Two rounds: prompts of four lengths, six in a row; then one, two and four streams with two lengths each.
    assert len(profile["samples"]) == 2 * (4 + 3 * 2)
    assert {sample["prompts"] for sample in profile["samples"]} <= {1, 2, 4, 6}
    assert all(sample["steps"] >= 1 and sample["busy_us"] > 0 for sample in profile["samples"])


def test_an_oracle_begins_with_the_profile(profile, folder):
    file = folder / "oracle.toml"
    file.write_text(MODEL + WORKER + '[oracle]\nprofiles = "profiles"\n')
    with Mesh("--config", file) as mesh:
        def costs():
            models = httpx.get(f"{mesh.url}/admin/snapshot", timeout=10).json()["models"]
            return models[0]["costs"] if models else None
        wait_until(costs, 30, "costs in the snapshot")
        told = costs()
    measured = {name: profile["costs"][name]["value"] for name in ("step_us", "prompt_token_us", "sequence_us")}
    assert told["prompt_token_us"] == pytest.approx(measured["prompt_token_us"], rel=0.5)
    assert told["step_us"] + told["sequence_us"] == pytest.approx(measured["step_us"] + measured["sequence_us"], rel=1.0)


def test_a_simulation_takes_the_profile_and_names_a_bad_one(profile, folder):
    trace = folder / "trace.csv"
    trace.write_text("arrival_s,app,input_tokens,output_tokens\n0,A-arith,64,16\n1,A-arith,64,16\n")
    report = folder / "report.json"
    done = sangam("simulate", trace, "--profile", folder / "profiles", "--workers", "1=1", "--time-scale", 1, "--json", report)
    assert done.returncode == 0, done.stderr
    assert json.loads(report.read_text())["all"]["requests"] == 2
    bad = folder / "bad.json"
    bad.write_text(json.dumps(profile | {"costs": {"step_us": -1}}))
    refused = sangam("simulate", trace, "--profile", bad, "--workers", "1=1")
    assert refused.returncode == 2
    assert "bad.json: costs: step_us = -1" in refused.stderr


def test_what_if_plays_the_load_of_a_mesh_and_refuses_what_makes_no_sense(folder):
    file, now, report = folder / "what_if.toml", folder / "now.json", folder / "what_if.json"
    file.write_text(MODEL + WORKER + "[oracle]\n")
    with Mesh("--config", file) as mesh:
        def is_asked_for():
            body = {"model": "A-arith", "prompt": "A347+085=", "max_tokens": 8}
            assert httpx.post(f"{mesh.url}/v1/completions", json=body, timeout=30).status_code == 200
            models = httpx.get(f"{mesh.url}/admin/snapshot", timeout=10).json()["models"]
            return bool(models) and bool(models[0].get("costs")) and models[0].get("traffic", {}).get("requests_per_second", 0) > 1
        wait_until(is_asked_for, 60, "traffic in the snapshot")
        assert sangam("ctl", "snapshot", "--url", mesh.url, "--output", now).returncode == 0
        direct = sangam("simulate", "--what-if", mesh.url, "--seconds", 2)
        assert direct.returncode == 0, direct.stderr
    done = sangam("simulate", "--what-if", now, "--change", "rate=3", "--change", "workers=+1", "--seconds", 10, "--json", report)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(report.read_text())
    assert before["title"] == "now" and after["title"] == "rate=3, workers=+1"
    assert after["all"]["requests"] > 2 * before["all"]["requests"] > 0
    for arguments, told in (
        (("--change", "workers=+-1"), "workers=+2"),
        (("--change", "remove nobody"), "A-arith"),
        (("--change", "rate=1000", "--change", "rate=1000", "--seconds", 86400), "--seconds"),
        (("--slo", "0.5"), "--slo"),
    ):
        refused = sangam("simulate", "--what-if", now, *arguments)
        assert refused.returncode == 2 and told in refused.stderr, refused.stderr
    now.write_text("{}")
    assert "ctl snapshot" in sangam("simulate", "--what-if", now).stderr
