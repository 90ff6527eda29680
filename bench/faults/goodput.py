#!/usr/bin/env python3
"""Goodput that was executed on the paced clock, beside what the simulation foretells of the same faults.

    bench/faults/goodput.py build/bin/hyperrun
    bench/faults/goodput.py build/bin/hyperrun --seeds 8 --policies spares elastic

A job of four devices trains under each policy with faults that are drawn from a model (run.chaos.model). A first run
measures what a loss and a restart take on this machine: the delays of the model's file. The others have this file, and
each compares itself with the simulation of its own faults: both are in its manifest.json, under "goodput". Times are
those of the modelled machine, wall time over the dilation.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

JOB = """name: "goodput"
supernode {{ devices: 4 hbm: "16 MiB" spares: {spares} }}
model {{ layers: 2 hidden: 64 heads: 4 kv_heads: 2 vocab: 320 sequence: 32 }}
parallel {{ mesh {{ name: "dp" size: 4 }} presets: "dp" }}
data {{ corpus: "{corpus}" }}
training {{ steps: {steps} batch: 12 lr: 3e-3 warmup_steps: 2 }}
run {{
  directory: "{directory}" clock: "paced" dilation: {dilation} restarts: 1000
  elastic: {elastic} {saves} chaos {{ model: "{model}" seed: {seed} }}
}}
"""

MODEL = """device {{ mtbf: "{mtbf} ms" repair: "{repair} ms" lasting: 0.5 }}
delays {{ detection: "{detection} ms" start: "{start} ms" compile: "0 s" join: "0 s" }}
storage {{ bandwidth: "1 GB/s" }}
save {{ beside: true share: {share} write_time: "{write} ms" read_time: "{read} ms" }}
copies {{ bandwidth: "{bandwidth} MB/s" share: {share} disk_every: "30 days" }}
horizon: "1 min"
"""

DEVICES, STATE_BYTES = 4, 12 * 139_584
EVERY = 5
POLICIES = {  # spares, elastic, saves
    "restart": (0, "false", f"checkpoint_every: {EVERY}"),
    "spares": (2, "false", f"checkpoint_every: {EVERY}"),
    "elastic": (0, "true", f"checkpoint_every: {EVERY}"),
    "memory": (2, "false", "copy_every: 2"),
}
PARTS = ("slower", "saving", "lost", "noticing", "waiting", "starting", "reading")


def model_text(delays, between, repair):
    """`between`: ms of the machine between two faults of the run."""
    stall, write = max(delays["stall"], 1e-4), max(delays["write"], delays["stall"], 1e-3)
    return MODEL.format(mtbf=between * DEVICES, repair=repair, detection=delays["detection"], start=delays["start"],
                        read=max(delays["read"], 1e-3), write=write, share=min(1, stall / write),
                        bandwidth=STATE_BYTES / DEVICES / (write * 1e-3) / 1e6)


def run(options, folder, policy, name, text, seed, steps):
    spares, elastic, saves = POLICIES[policy]
    model, job = folder / f"{name}.faults.textproto", folder / f"{name}.textproto"
    model.write_text(text)
    job.write_text(JOB.format(spares=spares, elastic=elastic, saves=saves, corpus=ROOT / "README.md", steps=steps,
                              directory=folder / name, dilation=options.dilation, model=model, seed=seed))
    done = subprocess.run([options.binary, str(job), "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr}")
    return json.loads((folder / name / "manifest.json").read_text())["goodput"]


def write_time(options, directory):
    """ms of the machine from the end of a step until its checkpoint is there, by the files' times."""
    ends = {}
    for line in (directory / "metrics.jsonl").read_text().splitlines():
        step = json.loads(line)
        ends[step["step"]] = step["time_ns"] / 1e9
    times = [d.stat().st_mtime - ends[int(d.name[-6:])] for d in (directory / "checkpoints").iterdir()]
    return 1e3 * statistics.median(t for t in times if t > 0) / options.dilation


def measured(options, folder, policy):
    """The delays on this machine, from a run with guessed ones."""
    guess = {"detection": 0.3, "start": 1, "read": 0.1, "write": 0.02, "stall": 0.001}
    text = model_text(guess, min(options.between), options.repair)
    for seed in range(1000, 1020):
        name = f"{policy}-first-{seed}"
        g = run(options, folder, policy, name, text, seed, 40)
        if g["faults"] >= 3:
            break
    starts = max(1, g["faults"] + g["returns_to_more_devices"])
    return {"detection": 1e3 * g["noticing_seconds"] / max(1, g["faults"]), "start": 1e3 * g["starting_seconds"] / starts,
            "read": 1e3 * g["reading_seconds"] / starts, "stall": 1e3 * g["saving_seconds"] / max(1, g["saves"]),
            "write": write_time(options, folder / name)}


def percent(goodputs, part):
    return 100 * sum(g[part] for g in goodputs) / sum(g["seconds"] for g in goodputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--policies", nargs="*", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--between", type=float, nargs="*", default=[8, 3], help="ms between two faults of the run")
    parser.add_argument("--repair", type=float, default=4, help="ms of a repair")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--dilation", type=float, default=2000)
    options = parser.parse_args()
    print("| policy | a fault each | faults | executed | foretold | ratio | without pacing | "
          + " | ".join(PARTS) + " |")
    print("|---" * (7 + len(PARTS)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for policy in options.policies:
            delays = measured(options, folder, policy)
            print(f"<!-- {policy}: ms measured {json.dumps({k: round(v, 4) for k, v in delays.items()})}, "
                  f"load {os.getloadavg()[0]:.1f} -->")
            for between in options.between:
                text = model_text(delays, between, options.repair)
                runs = [run(options, folder, policy, f"{policy}-{between:g}-{seed}", text, seed, options.steps)
                        for seed in range(1, options.seeds + 1)]
                foretold = [r["foretold"] for r in runs]
                mine, theirs = percent(runs, "useful_seconds"), percent(foretold, "useful_seconds")
                # Steps that are longer than simulated are no matter of faults: the ratio without them.
                excess = percent(runs, "slower_seconds") - percent(foretold, "slower_seconds")
                parts = " | ".join(f"{percent(runs, p + '_seconds'):.1f} ({percent(foretold, p + '_seconds'):.1f})"
                                   for p in PARTS)
                print(f"| {policy} | {between:g} ms | {sum(r['faults'] for r in runs)} "
                      f"({sum(r['faults'] for r in foretold)}) | {mine:.2f} % | {theirs:.2f} % | {mine / theirs:.3f} | "
                      f"{mine / (100 - excess) * 100 / theirs:.3f} | {parts} |", flush=True)


if __name__ == "__main__":
    main()
