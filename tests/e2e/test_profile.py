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
    assert len(profile["samples"]) == 2 * 10
    for sample in profile["samples"]:
        assert sample["prefill_tokens"] % sample["prompts"] == 0
        assert sample["steps"] >= 1 and sample["busy_us"] > 0


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
