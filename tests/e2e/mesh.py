"""A running mesh for tests: starts `sangam up`, knows its address and processes, and ends it."""

import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("SANGAM_BINARY", ROOT / "build" / "release" / "sangam"))
START_LIMIT_S = 60


def wait_until(condition, limit_s, what):
    """Asks again and again until the condition holds; a test that waits longer has failed."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.005)


class Mesh:
    """`with Mesh("--processes") as mesh: mesh.url`. Its log is `mesh.log` while it lives."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        self.state = tempfile.TemporaryDirectory(prefix="sangam-")
        self.log = Path(self.state.name) / "log"
        command = [BINARY, "up", "--listen", "127.0.0.1:0", "--state", self.state.name, *self.arguments]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        greeting = self.process.stdout.readline()
        found = re.match(r"listening on (http://\S+)", greeting)
        if not found:
            self.process.wait(timeout=START_LIMIT_S)
            raise AssertionError(f"no greeting but {greeting!r}; {self.log.read_text()}")
        self.url = found.group(1)
        wait_until(self.ready, START_LIMIT_S, f"ready: {self.url}")
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.state.cleanup()

    def ready(self):
        """Every model has an instance, as /metrics tells."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def pid_of(self, role):
        """The process that hosts a role under --processes; None while there is none."""
        wanted = f"\0run\0{role}\0".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if wanted in command and parent == self.process.pid:
                return int(entry.name)
        return None
