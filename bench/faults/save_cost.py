#!/usr/bin/env python3
"""What a save costs: how much longer the step after it takes, with the copy before it and the writing beside it.

    bench/faults/save_cost.py build/bin/hyperrun

Each job runs with a checkpoint every ten steps. A step after a save is compared with the others of its interval, so
that work of others on the machine concerns both alike.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

JOB = """name: "save"
supernode {{ devices: 2 hbm: "4 GiB" }}
model {{ layers: {layers} hidden: {hidden} heads: 8 vocab: 4096 sequence: {sequence} }}
parallel {{ mesh {{ name: "dp" size: 2 }} presets: "dp" {presets} }}
data {{ corpus: "{corpus}" }}
training {{ steps: {steps} batch: {batch} lr: 1e-3 warmup_steps: 2 }}
run {{ directory: "{directory}" checkpoint_every: {every} keep_last: 1 {copies} }}
"""

SIZES = [
    {"layers": 2, "hidden": 256, "sequence": 256, "batch": 8, "presets": ""},
    {"layers": 4, "hidden": 512, "sequence": 256, "batch": 16, "presets": ""},
    {"layers": 4, "hidden": 512, "sequence": 256, "batch": 16, "presets": 'presets: "zero1"'},
]


def corpus(path):
    words = "the state is copied while the next step runs and a thread of its own writes it".split()
    path.write_text(" ".join(words[(i * i + i // 7) % len(words)] for i in range(200_000)))


def steps_of(directory):
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    ends = [line["time_ns"] / 1e9 for line in lines]
    # From the end of the step before, so that a pause between them counts, by the step's number.
    return [(n + 1, ends[n] - ends[n - 1]) for n in range(1, len(lines))]


def state_bytes(directory):
    last = sorted((directory / "checkpoints").iterdir())[-1]
    return sum(file.stat().st_size for file in last.iterdir())


def measure(binary, size, every, steps, copies):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        corpus(folder / "corpus.txt")
        job = folder / "job.textproto"
        job.write_text(JOB.format(corpus=folder / "corpus.txt", directory=folder / "out", every=every, steps=steps,
                                  copies=copies, **size))
        subprocess.run([binary, str(job), "--quiet"], check=True, stdout=subprocess.DEVNULL)
        return steps_of(folder / "out"), state_bytes(folder / "out")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--saves", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=len(SIZES), help="the first so many jobs")
    parser.add_argument("--copies", default="", help='such as "copy_every: 2"')
    arguments = parser.parse_args()
    every = arguments.every
    print("| job | state, MiB | step, ms | more after a save, ms | cost of a save |")
    print("|---|---|---|---|---|")
    for size in SIZES[: arguments.jobs]:
        # The first save takes the memory for its copy, and the last is waited for: neither is counted.
        steps, size_of_state = measure(arguments.binary, size, every, every * (arguments.saves + 1) + 5,
                                       arguments.copies)
        step, cost = cost_of(steps, every)
        name = f"{size['layers']} x {size['hidden']}, {size['batch']} x {size['sequence']} {size['presets']}"
        print(f"| {name.strip()} | {size_of_state / 2**20:.0f} | {step * 1e3:.0f} | {step * cost * 1e3:+.1f} "
              f"| {100 * cost:+.1f} % of a step |", flush=True)


def cost_of(steps, every):
    """The median step, and how much longer the step after a save is: the median of its ratios to the steps of its own
    interval, as the machine's speed changes from one interval to the next."""
    intervals = {}
    for n, seconds in steps:
        intervals.setdefault((n - 1) // every, {})[(n - 1) % every] = seconds
    whole = [of for k, of in intervals.items() if k >= 2 and len(of) == every]
    ratios = [of[0] / statistics.median(of[n] for n in range(2, every)) for of in whole]
    return statistics.median(t for of in whole for t in of.values()), statistics.median(ratios) - 1


if __name__ == "__main__":
    main()
