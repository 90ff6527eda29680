"""Helpers of the benchmarks of Programs in tiles. They simulate a job, or execute it to scale on the paced clock, and compute
the masked share of some of its communication (under way while the device computes). Standard library only."""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The execution to scale: real messages and threads, each instruction as long as in the large model.
SHRINK = 'clock: "paced" shrink { width: 32 sequence: 32 vocab: 32 }'


def parser(doc, tiles):
    """Options of the benchmarks; `tiles` is the default list of tiles."""
    of = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    of.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    of.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    of.add_argument("--profile", default="matrix384")
    of.add_argument("--tiles", type=int, nargs="+", default=tiles, help="0: the compiler decides")
    of.add_argument("--steps", type=int, default=3)
    of.add_argument("--no-run", action="store_true", help="do not execute")
    of.add_argument("--json")
    return of


def output(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}")
    return done.stdout


def masked(said, counts):
    """For a step's communication that `counts`: its time under way on a device, and the masked share."""
    rows = [c for d in said["devices"] for c in d["collectives"] if counts(c)]
    time, exposed = (sum(c[key] for c in rows) for key in ("time_ns", "exposed_ns"))
    return time / len(said["devices"]) / len(said["steps"]), 1 - exposed / time


def simulated(options, job, counts):
    said = json.loads(output([options.hyperrun, "sim", job, "--json", "--no-range"]))
    return said["simulated"]["step_ns"], *masked(said, counts)


def executed(options, job, counts, kinds):
    """As above, measured: the times of instructions of `kinds`, which are those that `counts`."""
    where = job.with_name(job.stem + "-run")
    output([options.hyperrun, "run", job, "--run-dir", where, "--quiet"])
    said = json.loads((where / "report.json").read_text())
    paced = said["paced"]
    time = sum(i["measured_ns"] for i in paced["instructions"] if i["instruction"] in kinds)
    return paced["measured_ns"], time / paced["steps"] / len(said["devices"]), masked(said, counts)[1]


class Table:
    """Prints the table row by row, and appends the rows to the options' file."""

    def __init__(self, options, width, what):
        self.options, self.width, self.what = options, width, what
        print(f"{'':{width}} {'tiles':>5} {'step':>12} {what:>12} {'masked':>7}")

    def add(self, label, tiles, measured, **fields):
        step, time, share = measured
        print(f"{label:{self.width}} {tiles:5} {step / 1e6:9.3f} ms {time / 1e6:9.3f} ms {100 * share:6.1f}%",
              flush=True)
        if self.options.json:
            line = {**fields, "tiles": tiles, "step_ns": step, f"{self.what}_ns": time, "masked": share}
            with open(self.options.json, "a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
