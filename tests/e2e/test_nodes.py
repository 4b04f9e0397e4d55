"""Meshes of nodes with keys, and with more than one gateway."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import httpx

from mesh import BINARY, ROOT, wait_until
from nodes import Nodes

MODEL = "A-arith"
MODELS = {MODEL: ROOT / "models" / MODEL}
ROLES = {"front": ["gateway", "queue", "scheduler", "lifecycle"], "one": ["worker/1"], "two": ["worker/2"]}
WAIT_S = 60


def keygen(folder, *nodes):
    """The public keys that it prints, by node."""
    folder.mkdir(exist_ok=True)
    made = subprocess.run([BINARY, "keygen", folder, *nodes], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    found = re.findall(r'# \[\[node\]\] name = "(\S+)"\npublic_key = "(\S{40})"', made.stdout)
    assert [node for node, _ in found] == list(nodes)
    return dict(found)


def serves(http):
    reply = http.post("/v1/completions", json={"model": MODEL, "prompt": "A347+085=", "temperature": 0})
    return reply.status_code == 200 and reply.json()["choices"][0]["text"] == "2340"


def test_nodes_with_the_registrys_keys_serve_and_weights_cross_between_them(tmp_path):
    keys = tmp_path / "keys"
    own = {"all": {"mesh": [f'keys = "{keys}"'], "public_keys": keygen(keys, *ROLES)}}
    with Nodes(tmp_path, ROLES, MODELS, own) as nodes:
        nodes.await_workers("worker/1", "worker/2")
        assert nodes.order("wake", models=[MODEL], workers=["worker/1"]).status_code == 200
        assert serves(nodes.http)
        forked = nodes.order("fork", models=[MODEL], workers=["worker/2"])
        assert "fork" in [phase["name"] for phase in forked.json()["orders"][0]["phases"]]


def test_a_node_with_another_key_is_refused_by_name_and_the_others_serve(tmp_path):
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    keys, other = keygen(right, *ROLES), keygen(wrong, *ROLES)
    own = {"all": {"mesh": [f'keys = "{right}"'], "public_keys": keys},
           "two": {"mesh": [f'keys = "{wrong}"'], "public_keys": {**keys, "two": other["two"]}}}
    with Nodes(tmp_path, ROLES, MODELS, own) as nodes:
        nodes.await_workers("worker/1")
        assert nodes.order("wake", models=[MODEL], workers=["worker/1"]).status_code == 200
        assert serves(nodes.http)
        for node, other in (("front", "two"), ("one", "two"), ("two", "front"), ("two", "one")):
            wait_until(lambda: f"mesh.handshake_refused actor=mesh peer={other}" in nodes.log(node), WAIT_S, f"{node} names {other}")
            wait_until(lambda: re.search(r"mesh\.key_refused actor=mesh address=127\.0\.0\.1 ", nodes.log("front")), WAIT_S, "the stranger")
        assert {i["worker"] for i in nodes.instances()} == {"worker/1"}


def test_key_files_are_not_overwritten_and_only_their_owners_may_read_them(tmp_path):
    keys = tmp_path / "keys"
    own = {"all": {"mesh": [f'keys = "{keys}"'], "public_keys": keygen(keys, *ROLES)}}
    nodes = Nodes(tmp_path, ROLES, MODELS, own)
    file = nodes.configuration("one")
    secret = keys / "one.key"
    assert secret.stat().st_mode & 0o777 == 0o600

    def run():
        done = subprocess.run([BINARY, "run", "worker/1", "--config", file, "--state", tmp_path / "state"],
                              capture_output=True, text=True, timeout=WAIT_S)
        return done.returncode, done.stderr

    again = subprocess.run([BINARY, "keygen", keys, "one"], capture_output=True, text=True)
    assert again.returncode == 2 and "one.key: File exists" in again.stderr
    os.chmod(secret, 0o640)
    code, error = run()
    assert code == 2 and "one.key" in error and "chmod 600" in error
    os.chmod(secret, 0o600)
    text = secret.read_text()
    secret.write_text("short\n")
    code, error = run()
    assert code == 2 and "no secret key" in error and "short" not in error
    (keys / "two.key").rename(secret)
    code, error = run()
    assert code == 2 and "not the key of node one" in error and text.strip() not in error
    secret.unlink()
    code, error = run()
    assert code == 2 and "sangam keygen" in error


def test_two_gateways_of_one_mesh_serve_at_once_and_their_requests_are_told_apart(tmp_path):
    roles = {"front": ["gateway", "queue", "scheduler", "lifecycle"], "second": ["gateway"], "one": ["worker/1"]}
    with Nodes(tmp_path, roles, MODELS) as nodes:
        nodes.await_workers("worker/1")
        assert nodes.order("wake", models=[MODEL]).status_code == 200
        second = httpx.Client(base_url=nodes.urls["second"], timeout=WAIT_S)
        wait_until(lambda: second.get("/readyz").status_code == 200, WAIT_S, "the second gateway is ready")

        def ask(turn):
            client = (nodes.http, second)[turn % 2]
            a, b = 100 + turn, 900 - 7 * turn
            body = {"model": MODEL, "prompt": f"A{a}+{b:03}=", "temperature": 1, "seed": turn, "max_tokens": 60, "ignore_eos": True}
            reply = client.post("/v1/completions", json=body)
            assert reply.status_code == 200, reply.text
            return reply.json()["choices"][0]["text"]

        alone = [ask(turn) for turn in range(40)]
        with ThreadPoolExecutor(20) as clients:
            assert list(clients.map(ask, range(40))) == alone
        second.close()
