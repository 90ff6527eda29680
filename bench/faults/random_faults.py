#!/usr/bin/env python3
"""Runs with random faults, beside the same runs undisturbed.

Each seed draws a layout and one to three faults (run.chaos): a process is killed, stands still, is slow or loses its
connection; while the devices start, in a step, or while a checkpoint is saved. Every run must end by itself with the
losses and the last checkpoint of the undisturbed run, to the bit, and leave no process and no file behind. The table
tells the seconds from a loss to the end of the first repeated step.

  bench/faults/random_faults.py                     100 seeds
  bench/faults/random_faults.py --count 1000 --first 1
  bench/faults/random_faults.py --count 1 --first 17 --keep out     look at one
"""

import argparse
import collections
import filecmp
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

JOB = """name: "faults"
supernode {{ devices: {devices} hbm: "64 MiB" pool: "64 MiB" }}
model {{ layers: 4 hidden: 32 heads: 4 kv_heads: 4 vocab: 320 sequence: 32 {model} }}
parallel {{ {parallel} }}
memory {{ policy: "{memory}" }}
data {{ corpus: "corpus.txt" }}
training {{ steps: {steps} batch: 8 {training} lr: 3e-3 warmup_steps: 2 }}
run {{ checkpoint_every: 4 heartbeat: "500 ms" {run} }}
"""

EXPERTS = "experts { count: 4 choices: 2 ffn: 32 }"
STEPS = 12

# name: devices, ranks, model, parallel, memory, training
LAYOUTS = {
    "one": (1, 1, "", "", "none", ""),
    "dp": (2, 2, "", 'mesh { name: "dp" size: 2 } presets: "dp"', "none", ""),
    "zero1": (4, 2, "", 'mesh { name: "dp" size: 4 } presets: ["dp", "zero1"]', "none", ""),
    "zero3": (2, 2, "", 'mesh { name: "dp" size: 2 } presets: ["dp", "zero3"]', "none", ""),
    "tp": (2, 2, "", 'mesh { name: "tp" size: 2 } presets: ["tp", "sp"]', "none", ""),
    "cp": (2, 2, "", 'mesh { name: "cp" size: 2 } presets: "cp"', "none", ""),
    "ring": (2, 2, "", 'mesh { name: "ring" size: 2 } presets: "ring"', "none", ""),
    "ep": (2, 2, EXPERTS, 'mesh { name: "ep" size: 2 } presets: "ep"', "none", ""),
    "dp x tp": (4, 2, "", 'mesh { name: "dp" size: 2 } mesh { name: "tp" size: 2 } presets: ["dp", "tp"]', "none", ""),
    "pp": (2, 2, "", 'mesh { name: "pp" size: 2 } pipeline { axis: "pp" schedule: "1f1b" }', "none", "micro_batches: 4"),
    "pp x dp": (4, 4, "", 'mesh { name: "pp" size: 2 } mesh { name: "dp" size: 2 } presets: "dp" '
                          'pipeline { axis: "pp" schedule: "1f1b" }', "none", "micro_batches: 2"),
    "pool": (2, 2, "", 'mesh { name: "dp" size: 2 } presets: "dp"', "hyperoffload", ""),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=str(ROOT / "build/bin/hyperrun"), help="the program")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--keep", help="keep the runs in this folder")
    return parser.parse_args()


def job_of(layout, run):
    devices, _, model, parallel, memory, training = LAYOUTS[layout]
    return JOB.format(devices=devices, model=model, parallel=parallel, memory=memory, training=training, steps=STEPS,
                      run=run)


def faults_of(dice, devices):
    kinds = ["kill", "kill", "stop", "cut", "slow"]
    faults = []
    for _ in range(dice.randint(1, 3)):
        kind = dice.choice(kinds)
        step = dice.randint(0 if kind != "slow" else 1, STEPS)
        saving = step > 0 and dice.random() < 0.3
        faults.append(f'fault {{ kind: "{kind}" device: {dice.randrange(devices)} step: {step} '
                      f'saving: {str(saving).lower()} seconds: 0.2 }}')
    return "chaos { " + " ".join(faults) + " }"


def run(options, folder, name, layout, words):
    job = folder / f"{name}.textproto"
    job.write_text(job_of(layout, words))
    command = [options.hyperrun, job.name, "--run-dir", name, "--ranks", str(LAYOUTS[layout][1]), "--quiet"]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None


def losses(folder):
    by_step = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        metrics = json.loads(line)
        by_step[metrics["step"]] = metrics["loss"]
    return by_step


def differences(whole, disturbed):
    """Files of the last checkpoint that are not the same to the bit."""
    last = f"checkpoints/step-{STEPS:06d}"
    names = sorted(p.name for p in (whole / last).iterdir())
    if names != sorted(p.name for p in (disturbed / last).iterdir()):
        return ["other files"]
    return [n for n in names if not filecmp.cmp(whole / last / n, disturbed / last / n, shallow=False)]


def left_behind(folder, shared_before):
    left = []
    for _ in range(60):  # a dead process disappears a little later
        left = [entry for entry in os.listdir("/proc") if entry.isdigit() and folder.encode() in working_folder(entry)]
        left += sorted(name for name in set(os.listdir("/dev/shm")) - shared_before if not is_mapped(name))
        if not left:
            break
        time.sleep(0.05)
    return left


def is_mapped(name):
    """Whether a process uses this shared memory: then it is of another run."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if name in pathlib.Path("/proc", entry, "maps").read_text():
                return True
        except OSError:
            continue
    return False


def working_folder(process):
    try:
        return os.readlink(f"/proc/{process}/cwd").encode()
    except OSError:
        return b""


def fault_of(options, folder, seed):
    """Runs one seed. Returns what is wrong, the layout, the restarts, and the disturbed run's folder."""
    dice = random.Random(seed)
    layout = dice.choice(sorted(LAYOUTS))
    words = faults_of(dice, LAYOUTS[layout][0])
    whole, name = f"whole-{layout.replace(' ', '')}", f"seed-{seed}"
    shared = set(os.listdir("/dev/shm"))
    if not (folder / whole).exists():
        run(options, folder, whole, layout, "")
    ended = run(options, folder, name, layout, words)
    if ended is None:
        return "did not end within 120 s", layout, words, []
    (folder / f"{name}.err").write_text(ended.stderr)
    if ended.returncode != 0:
        return f"ended with {ended.returncode}: {ended.stderr.strip().splitlines()[-1:]}", layout, words, []
    restarts = json.loads((folder / name / "manifest.json").read_text())["restarts"]
    wrong = []
    if losses(folder / whole) != losses(folder / name):
        wrong.append("other losses")
    wrong += differences(folder / whole, folder / name)
    wrong += left_behind(str(folder), shared)
    if (folder / name / "tokens.bin").exists():
        wrong.append("tokens.bin is left")
    return ", ".join(wrong), layout, words, restarts


def main():
    options = arguments()
    options.hyperrun = str(pathlib.Path(options.hyperrun).resolve())
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="faults-")).resolve()
    folder.mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "README.md", folder / "corpus.txt")
    bad, seconds, runs = 0, [], collections.Counter()
    for seed in range(options.first, options.first + options.count):
        wrong, layout, words, restarts = fault_of(options, folder, seed)
        runs[layout] += 1
        seconds += [r["seconds"] for r in restarts]
        if wrong:
            bad += 1
            print(f"seed {seed} ({layout}; {words}): {wrong}", flush=True)
        elif not options.keep:
            shutil.rmtree(folder / f"seed-{seed}")
    print("layouts: " + ", ".join(f"{n} x {name}" for name, n in sorted(runs.items())))
    if seconds:
        print(f"{len(seconds)} restarts; from the loss to the end of the first repeated step: median "
              f"{statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s")
    print(f"{options.count - bad} of {options.count} runs ended as undisturbed")
    if not options.keep:
        shutil.rmtree(folder)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
