#!/usr/bin/env python3
"""A job that learns from rewards, with its programs in several places: how long a step takes, and how much of the time
a device is in a program.

    bench/mpmd/reinforcement.py                    on eight ranks, paced
    bench/mpmd/reinforcement.py --native --rounds 3

Colocated, every program has all eight devices and they take turns; apart, half of them generate and half learn. In order
(staleness 0), a step learns from what its own weights have made; behind, from what older ones have. Executed by mpirun, on
the paced clock: each instruction lasts as long as on the modelled machine, times --dilation. The model is small, so the
machine is, too: what a pass of generation takes is mostly launching instructions, what learning takes is computing, and
--cube, the rate of a device's matrix products, sets one against the other. Weights are random: a completion ends after as
many tokens as chance has it, --tokens at most.

Tokenizer and tasks are those of examples/sums.textproto, which has to have run. Standard library only."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 4  # steps: the first of those that run ahead begin with nothing to wait for


def program(name, does, first, devices, more=""):
    return (f'programs {{ name: "{name}" does: "{does}" first_device: {first} devices: {devices} {more} '
            f'parallel {{ mesh {{ name: "dp" size: {devices} }} presets: "dp" }} }}\n')


def textproto(options, cube, apart, staleness):
    half = options.devices // 2 if apart else options.devices
    first = options.devices - half
    clock = "" if options.native else f'run {{ clock: "paced" dilation: {options.dilation} }}'
    return f"""name: "reinforcement"
supernode {{ devices: {options.devices} hbm: "64 MiB" cube_flops: "{cube}" vector_flops: "{cube}" }}
model {{ layers: 3 hidden: 96 heads: 4 vocab: 258 sequence: {options.tokens + 16} tied_head: true }}
data {{ tasks: "{ROOT}/data/arithmetic/tasks.jsonl" tokenizer: "{ROOT}/runs/sums/tokenizer.json" }}
training {{ steps: {options.steps + SKIPPED} batch: {options.batch} lr: 1e-4 weight_decay: 0 policy {{ clip: 0.2 kl: 0.001 }} }}
reinforcement {{ samples: 8 tokens: {options.tokens} held_back: 0 staleness: {staleness} }}
{program("rollout", "generate", 0, half, f'weights: "learner" inference {{ slots: {options.batch} page: 16 }}')}
programs {{ name: "judge" does: "reward" inputs: "rollout" }}
{program("reference", "score", first, half, 'inputs: "rollout"')}
{program("learner", "train", first, half, 'inputs: ["rollout", "judge", "reference"]')}
{clock}
"""


def executed(options, text, folder):
    job = folder / "job.textproto"
    job.write_text(text)
    done = subprocess.run([options.hyperrun, job, "--quiet", "--run-dir", folder / "run"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr + done.stdout)
    run = pathlib.Path(done.stdout.rsplit("run directory: ", 1)[1].strip())
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = statistics.median(s["step_seconds"] for s in steps[SKIPPED:])
    return {"step_ms": 1e3 * seconds / (1 if options.native else options.dilation),
            "in_programs": json.loads((run / "report.json").read_text())["utilisation"],
            "staleness": statistics.mean(s["staleness"] for s in steps[SKIPPED:])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--cube", nargs="+", default=["20 GFLOP/s", "60 GFLOP/s", "200 GFLOP/s"])
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--dilation", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--native", action="store_true", help="as fast as the host can")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = [("colocated, in order", False, 0), ("apart, in order", True, 0), ("apart, 1 behind", True, 1),
             ("apart, 2 behind", True, 2)]
    for cube in options.cube:
        found = {name: [] for name, _, _ in cases}
        for _ in range(options.rounds):  # in turn, so that what else the host does is everybody's
            for name, apart, staleness in cases:
                with tempfile.TemporaryDirectory() as folder:
                    text = textproto(options, cube, apart, staleness)
                    found[name].append(executed(options, text, pathlib.Path(folder)))
        rows = [{"cube": cube, "case": name, **{key: statistics.median(r[key] for r in runs) for key in runs[0]}}
                for name, runs in found.items()]
        table(rows) if not options.json else print("\n".join(json.dumps(row) for row in rows))


def table(rows):
    print(f"{rows[0]['cube']:22} {'step':>10} {'steps/s':>9} {'in a program':>13} {'behind':>7}")
    for row in rows:
        print(f"{row['case']:22} {row['step_ms']:7.2f} ms {rows[0]['step_ms'] / row['step_ms']:8.2f}x "
              f"{100 * row['in_programs']:11.1f} % {row['staleness']:7.2f}", flush=True)


if __name__ == "__main__":
    main()
