#!/usr/bin/env python3
"""Planned transfers beside the reactive policy, simulated: Llama-3-8B on eight dies of the matrix384 profile, with HBM
for a share of what a job needs (--budget, 0.6 of its peak).

    bench/offload/against_reactive.py                                      the jobs of bench/results/offload.md
    bench/offload/against_reactive.py --job 'dp8 zero3, 8192 x 16384'      layout, sequence x tokens a die

For each job the table has its step in seconds with HBM for everything, under `reactive` and under `hyperoffload`; the
ratio of the last two, and the best ratio of any plan, as no plan is faster than a step without transfers. Then for
hyperoffload's plan: the busy time of the busier of dma-in and dma-out, the bandwidth bound (the bytes of that direction
at the pool's bandwidth), the exposed time of the step (it waits for transfers and does nothing else), and the hidden
share of the busier stream's time."""
import argparse
import json
import pathlib
import re
import sys

from jobs import DEVICES, MODELS, axes_of, job_text, profile_text
from simulated import peaks, simulate

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "llama8b"
# The jobs: layout, sequence x tokens a die.
JOBS = ("dp8, 2048 x 2048", "dp8, 2048 x 4096", "dp8, 2048 x 8192", "dp8, 8192 x 16384",
        "dp8 unclipped, 2048 x 2048", "dp8 unclipped, 2048 x 4096", "dp8 unclipped, 2048 x 8192",
        "dp8 unclipped, 8192 x 16384", "dp8 zero1, 8192 x 16384",
        "dp8 zero3, 8192 x 16384", "ring8 zero3, 32768 x 32768", "ring8 zero3, 262144 x 32768")
UNITS = {"GB/s": 1e9}


def pool_bandwidth():
    """The pool's bandwidth of a device, bytes/s each way."""
    value, unit = re.search(r'pool {[^}]*}\s*bandwidth { value: "([\d.]+) (\S+)"', profile_text()).groups()
    return float(value) * UNITS[unit]


def point_of(job):
    """The layout, and the point as job_text() takes it."""
    found = re.fullmatch(r"(.+), *(\d+) x (\d+)", job)
    if not found or not axes_of(found[1]):
        sys.exit(f"--job {job!r}: legal: LAYOUT, SEQUENCE x TOKENS, such as {JOBS[0]!r}")
    layout, sequence, tokens = found[1], int(found[2]), int(found[3])
    if tokens * DEVICES % sequence:
        sys.exit(f"--job {job!r}: {tokens} tokens on each of {DEVICES} dies are no whole number of sequences")
    return layout, {"model": MODEL, "sequence": sequence, "tokens": tokens, "batch": tokens * DEVICES // sequence}


def step(report):
    """The device that waits longest for transfers; the dies of a job are much alike."""
    device = max(report["devices"], key=lambda d: sum(s["busy_ns"] for s in d["streams"] if "dma" in s["stream"]))
    busy = {stream["stream"]: stream["busy_ns"] / 1e9 for stream in device["streams"]}
    moved = max((t["bytes"] for t in device.get("transfers", [])), default=0)
    exposed = max(part["transfer_ns"] for part in report["simulated"]["parts"]) / 1e9
    return {"seconds": report["time_ns"] / 1e9, "busy": max(busy["dma-in"], busy["dma-out"]), "moved": moved,
            "exposed": exposed, **peaks(report)}


def measure(options, job):
    layout, point = point_of(job)
    whole = simulate(options.hyperrun, job_text(point, layout, 1, "none", "none"))
    row = {"job": job, "none": step(whole)}
    budget = int(options.budget * row["none"]["hbm"])
    for policy in ("reactive", "hyperoffload"):
        report = simulate(options.hyperrun, job_text(point, layout, 1, "none", policy, budget))
        row[policy] = report if isinstance(report, str) else step(report)
    return row


def print_row(row, budget, bandwidth):
    free, reactive, planned = (row[policy] for policy in ("none", "reactive", "hyperoffload"))
    head = f"{row['job']:28} {budget * free['hbm'] / 2**30:7.1f} {free['seconds']:8.3f}"
    if isinstance(reactive, str) or isinstance(planned, str):
        print(f"{head}  reactive: {reactive if isinstance(reactive, str) else 'fits'}, "
              f"hyperoffload: {planned if isinstance(planned, str) else 'fits'}", flush=True)
        return
    hidden = 1 - planned["exposed"] / planned["busy"] if planned["busy"] else 1
    print(f"{head} {reactive['seconds']:9.3f} {planned['seconds']:9.3f} {reactive['seconds'] / planned['seconds']:7.2f} "
          f"{reactive['seconds'] / free['seconds']:9.2f} {planned['busy']:9.3f} {planned['moved'] / bandwidth:7.3f} "
          f"{planned['exposed']:8.3f} {100 * hidden:7.1f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--job", action="append", help="LAYOUT, SEQUENCE x TOKENS")
    parser.add_argument("--budget", type=float, default=0.6, help="of the HBM that a job needs")
    parser.add_argument("--json", help="a file that each job is added to")
    options = parser.parse_args()
    print(f"{'':28} {'HBM GiB':>7} {'free':>8} {'reactive':>9} {'planned':>9} {'ratio':>7} {'possible':>9} "
          f"{'transfers':>9} {'bound':>7} {'exposed':>8} {'hidden':>9}")
    bandwidth = pool_bandwidth()
    for job in options.job or JOBS:
        row = measure(options, job)
        print_row(row, options.budget, bandwidth)
        if options.json:
            with open(options.json, "a", encoding="utf-8") as out:
                out.write(json.dumps({"budget": options.budget, **row}) + "\n")


if __name__ == "__main__":
    main()
