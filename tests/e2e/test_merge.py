"""A pool that is merged by the command, killed on its way, resumed, and served."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest

from mesh import BINARY, Mesh, wait_until

MODELS = Path(__file__).parents[2] / "models"
POOL = """
budget = 3.0
own = ["b4", "b2"]
canonicals = ["b4"]
corrections = ["none", "b2"]
refinements = 2
[[model]]
name = "B-date"
path = "{models}/B-date"
task = "date.jsonl"
[[model]]
name = "B-count"
path = "{models}/B-count"
task = "count.jsonl"
"""
ITEMS = 500


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("merge")
    (folder / "pool.toml").write_text(POOL.format(models=MODELS))
    for task in ("date", "count"):
        lines = (MODELS / "eval" / f"{task}.jsonl").read_text().splitlines()[:ITEMS]
        (folder / f"{task}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def merge(pool, state, *more):
    return [BINARY, "merge", str(pool / "pool.toml"), "--state", str(pool / state), "--json", *more]


@pytest.fixture(scope="module")
def merged(pool):
    command = merge(pool, "whole", "-o", str(pool / "out"), "--html", str(pool / "page.html"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_outcome_is_told_and_written(pool, merged):
    assert merged["saved_percent"] > 60
    assert [model["model"] for model in merged["models"]] == ["B-date", "B-count"]
    recipe = json.loads((pool / "out" / "recipe.json").read_text())
    assert recipe["outcome"]["bytes"] == merged["bytes"]
    for model in ("B-date", "B-count"):
        assert (pool / "out" / model / "tokenizer.json").exists()
        size = (pool / "out" / model / "model.safetensors").stat().st_size
        assert size < 0.5 * (MODELS / model / "model.safetensors").stat().st_size


def test_page_draws_every_slot(pool, merged):
    page = (pool / "page.html").read_text()
    drawings = [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    assert len(drawings) == 2
    titles = [title.text for title in drawings[1].iter("title")]
    assert len(titles) == 2 * (1 + 5 * 7)  # The embedding, and seven projections of each of five layers.
    assert all(re.search(r": (own, (plain|b[24])|shared b4)", title) for title in titles)


def test_merged_models_serve_what_their_tasks_ask(pool, merged, tmp_path):
    config = tmp_path / "mesh.toml"
    config.write_text(f'[pool]\nfolder = "{pool / "out"}"\n[[worker]]\nname = "worker/1"\nmemory = "64MiB"\nthreads = 1\n')
    with Mesh("--config", str(config)) as mesh:
        right = 0
        items = [json.loads(line) for line in (pool / "date.jsonl").read_text().splitlines()[:40]]
        for item in items:
            body = {"model": "B-date", "prompt": item["prompt"], "temperature": 0, "max_tokens": 16}
            answer = httpx.post(f"{mesh.url}/v1/completions", json=body, timeout=30).json()
            right += answer["choices"][0]["text"] == item["answer"]
        assert right >= 0.9 * len(items)


def logged(folder):
    """Bytes of the store's log: it grows with every trial that is kept."""
    return sum(file.stat().st_size for file in folder.glob("*.log"))


@pytest.mark.parametrize("trials", [1, 6])
def test_killed_merge_ends_as_if_it_had_not_been(pool, merged, trials):
    state = f"killed-{trials}"
    process = subprocess.Popen(merge(pool, state), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    one_trial = 150  # Bytes at least: two hashes, and what two models did.
    begun = None

    def is_far_enough():
        nonlocal begun
        now = logged(pool / state) if (pool / state).exists() else 0
        if begun is None and now > 0:
            begun = now + one_trial  # The run's name comes first.
        return begun is not None and now > begun + trials * one_trial

    wait_until(is_far_enough, 200, f"{trials} trials")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = subprocess.run(merge(pool, state, "--resume"), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again.pop("evaluations") < merged["evaluations"]
    assert again == {name: value for name, value in merged.items() if name != "evaluations"}


@pytest.mark.parametrize(
    "line, told",
    [
        ('own = ["b5"]', "b5"),
        ('operator = "slerp"', "regmean"),
        ("budget = -1.0", "budget"),
        ('corrections = ["rank0"]', "rank"),
        ('colour = "red"', "colour"),
    ],
)
def test_bad_pool_is_refused_by_line(pool, tmp_path, line, told):
    bad = tmp_path / "pool.toml"
    text = (pool / "pool.toml").read_text()
    key = line.split(" ")[0]
    lines = [line if l.startswith(key + " ") else l for l in text.splitlines()]
    if line not in lines:
        lines.insert(0, line)
    bad.write_text("\n".join(lines))
    done = subprocess.run([BINARY, "merge", str(bad)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert str(bad) in done.stderr and told in done.stderr


def test_trials_of_another_pool_are_not_gone_on_with(pool, merged, tmp_path):
    other = pool / "other.toml"
    other.write_text((pool / "pool.toml").read_text().replace("budget = 3.0", "budget = 4.0"))
    command = [BINARY, "merge", str(other), "--state", str(pool / "whole"), "--resume"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "another pool" in done.stderr
    done = subprocess.run(merge(pool, "whole"), capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "--resume" in done.stderr


def test_item_beyond_the_context_is_refused_by_line(pool, tmp_path):
    items = (pool / "date.jsonl").read_text().splitlines()
    items[6] = json.dumps({"prompt": "D" * 300, "answer": "x"})
    (tmp_path / "date.jsonl").write_text("\n".join(items))
    text = (pool / "pool.toml").read_text().replace('task = "date.jsonl"', f'task = "{tmp_path / "date.jsonl"}"')
    text = text.replace('task = "count.jsonl"', f'task = "{pool / "count.jsonl"}"')
    bad = tmp_path / "pool.toml"
    bad.write_text(text)
    done = subprocess.run([BINARY, "merge", str(bad)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "date.jsonl:7:" in done.stderr and "context" in done.stderr
