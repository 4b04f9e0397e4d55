"""Meshes of several nodes for tests: processes that meet over TCP, keep no memory with a common holder, and may each have
a configuration of their own, as on hosts of their own."""

import re
import shutil
import signal
import socket
import subprocess

import httpx

from mesh import BINARY, ROOT, START_LIMIT_S, wait_until


def free_ports(count):
    """Ports that were free a moment ago, with those above them for bulk channels."""
    found = []
    while len(found) < count:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port + 1000 > 65535 or port in found or port - 1000 in found or port + 1000 in found:
                continue
            try:
                other.bind(("127.0.0.1", port + 1000))
            except OSError:
                continue
            found.append(port)
    return found


def without_weights(folder, model):
    """A copy of a model's folder with all but the weights."""
    target = folder / "bare" / model
    shutil.copytree(ROOT / "models" / model, target, ignore=shutil.ignore_patterns("*.safetensors"))
    return target


class Nodes:
    """`with Nodes(folder, {"front": [...], "one": ["worker/1"]}, models) as nodes: nodes.http`.

    `models` is a mapping of ids to folders; `own` holds, by node, what that node's configuration says in its place:
    {"models": ..., "mesh": ..., "public_keys": ...}."""

    def __init__(self, folder, roles, models, own=None, worker=""):
        self.folder, self.roles, self.models, self.own, self.worker = folder, roles, models, own or {}, worker
        self.ports = dict(zip(roles, free_ports(len(roles))))
        self.processes, self.urls = {}, {}

    def configuration(self, node):
        own = self.own.get(node, {})
        lines = ["[mesh]", 'log = "info"', 'heartbeat_timeout = "3s"', *own.get("mesh", self.own.get("all", {}).get("mesh", []))]
        for model, path in own.get("models", self.models).items():
            lines += ["[[model]]", f'id = "{model}"', f'path = "{path}"']
        for worker in sorted(role for listed in self.roles.values() for role in listed if role.startswith("worker/")):
            lines += ["[[worker]]", f'name = "{worker}"', 'memory = "512MiB"', "threads = 1", "preload = false", self.worker]
        keys = own.get("public_keys", self.own.get("all", {}).get("public_keys", {}))
        for name, listed in self.roles.items():
            lines += ["[[node]]", f'name = "{name}"', f'endpoint = "tcp://127.0.0.1:{self.ports[name]}"', f"roles = {listed}"]
            if name in keys:
                lines.append(f'public_key = "{keys[name]}"')
        file = self.folder / f"{node}.toml"
        file.write_text("\n".join(lines))
        return file

    def log(self, node):
        return (self.folder / f"{node}.log").read_text()

    def start(self, node):
        command = [BINARY, "run", *self.roles[node], "--node", node, "--listen", "127.0.0.1:0", "--config", self.configuration(node),
                   "--state", self.folder / node]
        with (self.folder / f"{node}.log").open("a") as log:
            self.processes[node] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        if "gateway" in self.roles[node]:
            greeting = self.processes[node].stdout.readline()
            found = re.match(r"listening on (http://\S+)", greeting)
            assert found, f"{node} said {greeting!r}; {self.log(node)}"
            self.urls[node] = found.group(1)

    def kill(self, node, how=signal.SIGKILL):
        self.processes[node].send_signal(how)

    def __enter__(self):
        for node in self.roles:
            self.start(node)
        self.http = httpx.Client(base_url=next(iter(self.urls.values())), timeout=START_LIMIT_S)
        return self

    def await_workers(self, *workers):
        wait_until(lambda: set(workers) <= {i["worker"] for i in self.instances()}, START_LIMIT_S, f"{workers} are here")

    def __exit__(self, *_):
        self.http.close()
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=30)
            finally:
                process.kill()
                process.stdout.close()

    def order(self, verb, **body):
        return self.http.post(f"/admin/{verb}", json=body)

    def instances(self):
        answer = self.http.get("/admin/models")
        return answer.json()["instances"] if answer.status_code == 200 else []

    def residency(self, worker, model):
        return next((i["residency"] for i in self.instances() if (i["worker"], i["model"]) == (worker, model)), None)

    def memory(self, worker):
        return next(w for w in self.http.get("/admin/memory").json()["workers"] if w["worker"] == worker)
