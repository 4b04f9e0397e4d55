"""What an operator gets wrong: each mistake ends with its exit code and a message that names the place."""

import json
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from mesh import BINARY, ROOT, Mesh

LIMIT_S = 30


def up(state, *arguments, listen="127.0.0.1:0"):
    """The exit code and the message of a mesh that must refuse to start."""
    command = [BINARY, "up", "--listen", listen, "--state", str(state), "--log", "error", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    return ended.returncode, ended.stderr


def test_a_wrong_key_is_named_with_its_line_and_the_nearest_valid_one(tmp_path):
    config = tmp_path / "mesh.toml"
    config.write_text('[gateway]\nlissten = "127.0.0.1:0"\n')
    code, message = up(tmp_path, "--config", str(config))
    assert code == 2
    assert f"{config}:2: unknown key 'lissten' in [gateway]; did you mean 'listen'?" in message


def test_a_wrong_command_line_is_exit_code_2():
    assert subprocess.run([BINARY, "frobnicate"], capture_output=True).returncode == 2
    ended = subprocess.run([BINARY, "run", "nobody"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "'nobody' is no role of this mesh" in ended.stderr


@pytest.mark.parametrize("kind", [(), ("--processes",)], ids=["one process", "processes"])
def test_a_port_in_use_is_exit_code_3(tmp_path, kind):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, message = up(tmp_path, *kind, listen=address)
    assert code == 3
    assert f"cannot listen on {address}: the port is in use" in message


def test_a_state_folder_that_another_mesh_has_open_is_exit_code_4():
    with Mesh() as mesh:
        code, message = up(mesh.state.name)
    assert code == 4
    assert "another process has it open" in message


def test_a_full_disk_is_exit_code_4_and_leaves_nothing_running(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode != 0:
        pytest.skip("skipped: no right to mount a small disk")
    try:
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
            while True:
                filler.write(b"\0" * 4096)
        code, message = up(disk)
        assert code == 4
        assert str(disk) in message
    finally:
        subprocess.run(["umount", disk], check=True)


def test_no_mesh_to_ask_is_exit_code_5():
    ended = subprocess.run([BINARY, "ask", "--url", "http://127.0.0.1:1", "m", "p"], capture_output=True, text=True)
    assert ended.returncode == 5
    assert "start a mesh with ./run" in ended.stderr


def test_a_broken_checkpoint_is_refused_by_name_and_the_others_serve(tmp_path):
    pool = tmp_path / "pool"
    for model in ("A-arith", "A-roman"):
        shutil.copytree(ROOT / "models" / model, pool / model)
    weights = pool / "A-roman" / "model.safetensors"
    os.truncate(weights, weights.stat().st_size - 100)
    with Mesh("--models", str(pool)) as mesh:
        def ask(model, prompt):
            body = json.dumps({"model": model, "prompt": prompt, "temperature": 0}).encode()
            request = urllib.request.Request(f"{mesh.url}/v1/completions", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
                return json.load(answer)["choices"][0]["text"]

        assert ask("A-arith", "A347+085=") == "2340"
        log = mesh.log.read_text()
    assert "A-roman" in log
    assert "model.safetensors" in log


def test_requests_that_can_never_run_are_refused_with_the_numbers(http):
    unknown = http.post("/v1/completions", json={"model": "no-such", "prompt": "x"})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "model_not_found"
    long = http.post("/v1/completions", json={"model": "A-arith", "prompt": "1" * 300})
    assert long.status_code == 400
    assert long.json()["error"]["code"] == "context_length_exceeded"
    assert "256" in long.json()["error"]["message"]
    broken = http.post("/v1/completions", content="{\"model\": ", headers={"Content-Type": "application/json"})
    assert broken.status_code == 400
    assert broken.json()["error"]["type"] == "invalid_request_error"
