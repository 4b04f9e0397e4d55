"""`sangam simulate`: a trace against a fleet in virtual time; the same options give the same figures, wrong ones say so."""

import json
import subprocess
from xml.etree import ElementTree

import pytest

from mesh import BINARY

LIMIT_S = 300
SMALL = ("--from", "600", "--for", "20", "--rate", "0.2")


def simulate(*arguments):
    return subprocess.run([BINARY, "simulate", *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_a_part_of_the_day_is_played_and_drawn_the_same_each_time(tmp_path):
    report, picture = tmp_path / "report.json", tmp_path / "fleet.svg"
    done = simulate(*SMALL, "--json", report, "--svg", picture)
    assert done.returncode == 0, done.stderr
    figures = json.loads(report.read_text())
    assert figures["all"]["requests"] > 200
    assert 0.3 < figures["all"]["tokens_on_time_share"] <= 1.0
    assert 0.0 < figures["device_hours"] < figures["device_hours_static"] == pytest.approx(768 * figures["duration_s"] * 48 / 3600)
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    again = tmp_path / "again.json"
    simulate(*SMALL, "--json", again)
    assert again.read_text() == report.read_text()


def test_controls_stand_side_by_side(tmp_path):
    report = tmp_path / "both.json"
    done = simulate(*SMALL, "--control", "sangam,blitzscale", "--json", report)
    assert done.returncode == 0, done.stderr
    assert "sangam" in done.stdout and "blitzscale" in done.stdout
    assert [one["title"] for one in json.loads(report.read_text())] == ["sangam", "blitzscale"]


def test_a_trace_of_ones_own_runs_on_a_fleet_of_ones_own(tmp_path):
    trace = tmp_path / "calls.csv"
    lines = [f"{10 + i * 0.5:.3f},chat,{100 + i % 50},{5 + i % 9}" for i in range(60)]
    trace.write_text("\n".join(["arrival_s,app,input_tokens,output_tokens", *lines, ""]))
    report = tmp_path / "calls.json"
    done = simulate(trace, "--workers", "1=4", "--base", "dense-1.7b", "--time-scale", 1, "--json", report)
    assert done.returncode == 0, done.stderr
    figures = json.loads(report.read_text())
    assert figures["all"]["requests"] == 60
    assert figures["failures"] == {}


@pytest.mark.parametrize("arguments, said", [
    (("--control", "magic"), "use one of sangam, elastic_only"),
    (("--dispatch", "magic"), "use one of lst_imh"),
    (("--workers", "16"), "write DEVICES=COUNT"),
    (("--workers", "1=4"), "add --workers"),
    (("--from", "100000"), "no request is left of it"),
    (("/nonexistent.csv",), "/nonexistent.csv"),
])
def test_wrong_options_name_the_remedy(arguments, said):
    done = simulate(*arguments)
    assert done.returncode != 0
    assert said in done.stderr
