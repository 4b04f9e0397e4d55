#!/usr/bin/env python3
"""Solves packing problems to optimality with HiGHS, in an environment of its own.

Usage: exact.py FOLDER

FOLDER/instances.jsonl holds one problem a line: {"own": [[hbm, compute, bandwidth], ...], "pieces": [hbm, ...],
"has": [[piece, ...], ...], "models_max": N}. FOLDER/venv gets numpy and highspy from PyPI. Every set of models that fits
one worker is enumerated; the fewest of the maximal ones that cover all models is a packing with the fewest workers,
since a part of a set that fits fits, too. Prints "number workers is_optimal" for each problem on standard output, all
else on standard error; prints nothing where HiGHS cannot be had.
"""

import json
import multiprocessing
import os
import pathlib
import subprocess
import sys

PACKAGES = ["numpy", "highspy"]
SECONDS_MAX = 30.0
ROUNDING = 1e-9


def enter_environment(folder):
    """Goes on in FOLDER/venv, which is made where it is not there."""
    python = folder / "venv" / "bin" / "python"
    done = folder / "venv" / "complete"
    if not done.exists():
        print("installing HiGHS (once) ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, stdout=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, stdout=sys.stderr)
        done.write_text("")
    if pathlib.Path(sys.prefix) != (folder / "venv").resolve():
        os.execv(python, [python, *sys.argv])


def fitting_sets(problem):
    """The maximal sets of models that fit one worker, as tuples."""
    own, pieces, has = problem["own"], problem["pieces"], problem["has"]

    def fits(models):
        union = set().union(*(has[i] for i in models))
        hbm = sum(own[i][0] for i in models) + sum(pieces[p] for p in union)
        return hbm <= 1 + ROUNDING and all(sum(own[i][d] for i in models) <= 1 + ROUNDING for d in (1, 2))

    level = [(i,) for i in range(len(own)) if fits((i,))]
    found = []
    while level:
        found += level
        if len(level[0]) == problem["models_max"]:
            break
        level = [models + (i,) for models in level for i in range(models[-1] + 1, len(own)) if fits(models + (i,))]
    covered = {models[:k] + models[k + 1:] for models in found for k in range(len(models))}
    return [models for models in found if models not in covered]


def solve(numbered):
    """(number, workers, whether that is proven)."""
    import highspy
    import numpy

    number, line = numbered
    problem = json.loads(line)
    sets = fitting_sets(problem)
    rows = len(problem["own"])
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("time_limit", SECONDS_MAX)
    solver.setOptionValue("mip_abs_gap", 0.999)  # Counts are whole.
    for _ in range(rows):
        solver.addRow(1.0, highspy.kHighsInf, 0, numpy.array([], dtype=numpy.int32), numpy.array([]))
    for models in sets:
        solver.addCol(1.0, 0.0, 1.0, len(models), numpy.array(models, dtype=numpy.int32), numpy.ones(len(models)))
    kinds = numpy.array([highspy.HighsVarType.kInteger] * len(sets))
    solver.changeColsIntegrality(len(sets), numpy.arange(len(sets), dtype=numpy.int32), kinds)
    solver.run()
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    workers = round(solver.getInfo().objective_function_value) if solver.getInfo().primal_solution_status else 0
    return number, workers, optimal


def be_quiet():
    """What HiGHS prints goes to standard error."""
    os.dup2(2, 1)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    try:
        enter_environment(folder)
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"HiGHS cannot be installed here: {error}")
    lines = (folder / "instances.jsonl").read_text().splitlines()
    with multiprocessing.Pool(initializer=be_quiet) as pool:
        for number, workers, optimal in pool.imap_unordered(solve, enumerate(lines), chunksize=4):
            print(number, workers, int(optimal), flush=True)


if __name__ == "__main__":
    main()
