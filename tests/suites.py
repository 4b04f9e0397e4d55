"""Builds, runs the test suites one after another, shows progress, and ends with one count of all tests."""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
VENV = ROOT / "build" / "venv"
SKIPPED = 77  # What a suite exits with when this machine cannot run it.


@dataclass
class Suite:
    """A command whose output ends in a count that one of COUNTS understands."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    needs_python: bool = False


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


COUNTS = [
    re.compile(r"\[doctest\] test cases: +\d+ \| +(?P<passed>\d+) passed \| +(?P<failed>\d+) failed \| +(?P<skipped>\d+) skipped"),
    re.compile(r"^Ran (?P<passed>\d+) tests? in", re.M),
    re.compile(r"^tidy: (?P<passed>\d+) passed, (?P<failed>\d+) failed", re.M),
    re.compile(r"^=*.*?\b(?P<counts>\d+ (?:passed|failed|skipped|error).*) in [\d.]+s", re.M),
]


def count_of(output, code):
    """The tests that a suite ran, from its last closing line; a suite without one counts as one test."""
    if code == SKIPPED:
        return Count(skipped=1)
    for pattern in COUNTS:
        matches = list(pattern.finditer(output))
        if not matches:
            continue
        groups = matches[-1].groupdict()
        if "counts" in groups:
            words = dict((word, int(number)) for number, word in re.findall(r"(\d+) (\w+)", groups["counts"]))
            failed = words.get("failed", 0) + words.get("error", 0) + words.get("errors", 0)
            count = Count(words.get("passed", 0), failed, words.get("skipped", 0))
        else:
            count = Count(*(int(groups.get(key) or 0) for key in ("passed", "failed", "skipped")))
        if code != 0 and count.failed == 0:
            count.failed = 1  # It died after or beside its tests.
        return count
    return Count(passed=int(code == 0), failed=int(code != 0))


def suites():
    units = sorted(path.name for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir())
    python = str(VENV / "bin" / "python")
    listed = [Suite("tidy", [sys.executable, "tests/tidy/tidy.py"]),
              Suite("tidy_rules", [sys.executable, "-m", "unittest", "discover", "-s", "tests/tidy"])]
    listed += [Suite(f"unit_{name}", [str(BUILD / f"unit_{name}")]) for name in units]
    listed += [Suite("e2e", [python, "-m", "pytest", "-q", "tests/e2e"], needs_python=True),
               Suite("docker", ["tests/docker/run"])]
    return listed


def show(text):
    print(text, flush=True)


def prepare_python():
    """The virtual environment of the end-to-end suite, made once per set of requirements."""
    requirements = ROOT / "tests" / "e2e" / "requirements.txt"
    stamp = VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return
    show("test: installing the real clients into build/venv")
    subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    subprocess.run([VENV / "bin" / "pip", "install", "-q", "-r", requirements], check=True)
    stamp.write_text(requirements.read_text())


def run(suite, logs):
    """Runs one suite with its output in a log; shows the log's end if it failed."""
    started = time.monotonic()
    log = logs / f"{suite.name}.log"
    environment = {**os.environ, **suite.environment, "SANGAM_BINARY": str(BUILD / "sangam")}
    with log.open("w") as file:
        code = subprocess.run(suite.command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, env=environment).returncode
    output = log.read_text(errors="replace")
    count = count_of(output, code)
    verdict = "FAILED" if count.failed else "skipped" if code == SKIPPED else "ok"
    show(f"  {suite.name:<18} {verdict:<8} {count.passed:>5} passed {count.failed:>3} failed "
         f"{count.skipped:>3} skipped {time.monotonic() - started:7.1f} s")
    if count.failed:
        show("\n".join(output.splitlines()[-60:]))
        show(f"  the whole output: {log}")
    elif count.skipped:
        for line in sorted(set(re.findall(r"^.*skipped: .*$", output, re.M)))[:8]:
            show(f"    {line.strip()}")
    return count


def main():
    parser = argparse.ArgumentParser(prog="./test")
    parser.add_argument("names", nargs="*", help="run only suites whose names begin with one of these")
    parser.add_argument("--list", action="store_true", help="list the suites")
    options = parser.parse_args()
    chosen = [suite for suite in suites() if not options.names or suite.name.startswith(tuple(options.names))]
    if options.list:
        print("\n".join(suite.name for suite in chosen))
        return 0
    if not chosen:
        show(f"test: no suite begins with {' or '.join(options.names)}; see ./test --list")
        return 2
    show("test: building")
    if subprocess.run(["ninja", "-C", str(BUILD)]).returncode != 0:
        return 2
    if any(suite.needs_python for suite in chosen):
        prepare_python()
    logs = BUILD / "test_logs"
    logs.mkdir(exist_ok=True)
    show(f"test: running {len(chosen)} suites")
    total = Count()
    for suite in chosen:
        total += run(suite, logs)
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    show(f"{total.passed} passed, {total.failed} failed{skipped}")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
