#!/usr/bin/env python3
"""Runs with random faults, beside the same runs undisturbed.

Each seed draws a job (fault_jobs.py) and one to three faults (run.chaos): a process is killed, stands still, is slow or
loses its connection; while the devices start, in a step, or while a checkpoint is saved. Every run must end by itself
with the losses and the last checkpoint of the undisturbed run, to the bit, and leave no process and no file behind. The
last lines tell the seconds from a loss to the end of the first repeated step.

  bench/faults/random_faults.py                     100 seeds
  bench/faults/random_faults.py --count 1000 --first 1
  bench/faults/random_faults.py --count 1 --first 17 --keep out     look at one
  deploy/lab/netns.sh up 2 && deploy/lab/netns.sh run bench/faults/random_faults.py --heartbeat "3 s" --hostfile HOSTS
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

import fault_jobs

ROOT = pathlib.Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=str(ROOT / "build/bin/hyperrun"), help="the program")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--kinds", nargs="+", help='of these kinds alone, such as: "dp x tp" reinforcement media')
    parser.add_argument("--hostfile", help="the hosts to run on, such as those of deploy/lab/netns.sh hostfile")
    parser.add_argument("--heartbeat", default="500 ms", help="run.heartbeat; between hosts no less than 3 s")
    parser.add_argument("--keep", help="keep the runs in this folder")
    return parser.parse_args()


def faults_of(dice, job):
    kinds = ["kill", "kill", "stop", "cut", "slow"]
    faults = []
    for _ in range(dice.randint(1, 3)):
        kind = dice.choice(kinds)
        step = dice.randint(0 if kind != "slow" else 1, job.steps)
        saving = step > 0 and dice.random() < 0.3
        faults.append(f'fault {{ kind: "{kind}" device: {dice.randrange(job.devices)} step: {step} '
                      f'saving: {str(saving).lower()} seconds: 0.2 }}')
    return "chaos { " + " ".join(faults) + " }"


def run(options, folder, name, job, words):
    (folder / f"{name}.textproto").write_text(job.with_run(words))
    command = [options.hyperrun, f"{name}.textproto", "--run-dir", name, "--quiet"]
    command += ["--hostfile", options.hostfile] if options.hostfile else ["--ranks", str(job.ranks)]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None


def numbers(folder):
    """The numbers of a step or an evaluation that depend on no clock; of a repeated step, the last."""
    by_step = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        metrics = json.loads(line)
        what = [key for key in ("loss", "grad_norm", "reward", "held_back_reward", "correct") if key in metrics]
        by_step[metrics.get("step"), metrics.get("encoder"), what[0]] = [metrics[key] for key in what]
    return by_step


def differences(whole, disturbed, steps):
    """Files of the last checkpoint that are not the same to the bit."""
    last = f"checkpoints/step-{steps:06d}"
    names = [sorted(str(path.relative_to(run / last)) for path in (run / last).rglob("*") if path.is_file())
             for run in (whole, disturbed)]
    if names[0] != names[1]:
        return ["other files"]
    return [n for n in names[0] if not filecmp.cmp(whole / last / n, disturbed / last / n, shallow=False)]


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
    """Runs one seed. Returns what is wrong, the kind of job, the faults, and the restarts."""
    dice = random.Random(seed)
    kind = dice.choice(options.kinds)
    job = options.jobs[kind]
    words = faults_of(dice, job)
    whole, name = f"whole-{kind.replace(' ', '')}", f"seed-{seed}"
    shared = set(os.listdir("/dev/shm"))
    if not (folder / whole).exists():
        undisturbed = run(options, folder, whole, job, "")
        if undisturbed is None or undisturbed.returncode != 0:
            sys.exit(f"{kind} fails without a fault: {undisturbed and undisturbed.stderr}")
    ended = run(options, folder, name, job, words)
    if ended is None:
        return "did not end within 120 s", kind, words, []
    (folder / f"{name}.err").write_text(ended.stderr)
    if ended.returncode != 0:
        return f"ended with {ended.returncode}: {ended.stderr.strip().splitlines()[-1:]}", kind, words, []
    restarts = json.loads((folder / name / "manifest.json").read_text())["restarts"]
    wrong = []
    if numbers(folder / whole) != numbers(folder / name):
        wrong.append("other numbers")
    wrong += differences(folder / whole, folder / name, job.steps)
    wrong += left_behind(str(folder), shared)
    if (folder / name / "tokens.bin").exists():
        wrong.append("tokens.bin is left")
    return ", ".join(wrong), kind, words, restarts


def main():
    options = arguments()
    options.hyperrun = str(pathlib.Path(options.hyperrun).resolve())
    options.jobs = fault_jobs.jobs(options.heartbeat)
    options.kinds = options.kinds or sorted(options.jobs)
    if options.hostfile:
        options.hostfile = str(pathlib.Path(options.hostfile).resolve())
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="faults-")).resolve()
    folder.mkdir(exist_ok=True)
    fault_jobs.write_inputs(folder, options.hyperrun)
    bad, seconds, runs = 0, [], collections.Counter()
    for seed in range(options.first, options.first + options.count):
        wrong, kind, words, restarts = fault_of(options, folder, seed)
        runs[kind] += 1
        seconds += [r["seconds"] for r in restarts]
        if wrong:
            bad += 1
            print(f"seed {seed} ({kind}; {words}): {wrong}", flush=True)
        elif not options.keep:
            shutil.rmtree(folder / f"seed-{seed}")
        if (seed - options.first) % 50 == 49:
            print(f"{seed - options.first + 1} of {options.count} done", file=sys.stderr, flush=True)
    print("jobs: " + ", ".join(f"{n} x {name}" for name, n in sorted(runs.items())))
    if seconds:
        print(f"{len(seconds)} restarts; from the loss to the end of the first repeated step: median "
              f"{statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s")
    print(f"{options.count - bad} of {options.count} runs ended as undisturbed")
    if not options.keep:
        shutil.rmtree(folder)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
