#!/usr/bin/env python3
"""Steps of runs on this machine beside their simulation by `hyperrun sim`, with a profile that `hyperrun calibrate`
has just written.

    bench/calibrate/native.py                        calibrates for 1, 2 and 4 devices, then runs all jobs
    bench/calibrate/native.py --only tp2 --kinds     with the time of each kind of instruction, of device 0

The benchmark compares the median step of the run with the simulated one. Let nothing else run meanwhile: steps and
measurements are as noisy as the machine. Standard library only; a table on standard output."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
#        name, devices, mesh, presets, pipeline, micro-batches, batch, further training fields, model
JOBS = [
    ("quickstart", 4, "dp:2 tp:2", "dp tp sp", "", 1, 4, "",
     "layers: 4 hidden: 192 heads: 6 kv_heads: 2 vocab: 1024 sequence: 128 tied_head: true"),
    ("one_device", 1, "dp:1", "dp", "", 1, 4, "", "layers: 4 hidden: 256 heads: 8 vocab: 1024 sequence: 256"),
    ("dp2_large", 2, "dp:2", "dp", "", 1, 4, "", "layers: 6 hidden: 384 heads: 6 vocab: 2048 sequence: 256"),
    ("dp4_zero1", 4, "dp:4", "dp zero1", "", 1, 8, "", "layers: 4 hidden: 256 heads: 4 vocab: 1024 sequence: 128"),
    ("tp2_long", 2, "tp:2", "tp sp", "", 1, 2, "", "layers: 4 hidden: 256 heads: 8 vocab: 1024 sequence: 512"),
    ("tp2_bfloat16", 2, "tp:2", "tp sp", "", 1, 4, 'precision: "bfloat16"',
     "layers: 4 hidden: 256 heads: 4 vocab: 1024 sequence: 256"),
    ("pp2_1f1b", 2, "pp:2", "", 'pipeline { axis: "pp" schedule: "1f1b" }', 4, 8, "",
     "layers: 4 hidden: 256 heads: 4 vocab: 1024 sequence: 256"),
    ("pp4_1f1b", 4, "pp:4", "", 'pipeline { axis: "pp" schedule: "1f1b" }', 4, 8, "",
     "layers: 8 hidden: 192 heads: 4 vocab: 1024 sequence: 128"),
]


def textproto(job, options, profile):
    name, devices, mesh, presets, pipeline, micro_batches, batch, training, model = job
    axes = " ".join('mesh { name: "%s" size: %s }' % tuple(axis.split(":")) for axis in mesh.split())
    return f"""name: "{name}"
supernode {{ devices: {devices} profile: "{profile}" hbm: "512 MiB" }}
model {{ {model} }}
parallel {{ {axes} presets: [{", ".join(f'"{p}"' for p in presets.split())}] {pipeline} }}
data {{ corpus: "{options.corpus}" }}
training {{ steps: {options.steps} batch: {batch} micro_batches: {micro_batches} lr: 1e-3 {training} }}
run {{ trace_first: 10 trace_steps: 10 }}
"""


def hyperrun(options, *arguments):
    done = subprocess.run([options.hyperrun, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}{done.stdout}")
    return done.stdout


def kinds(folder):
    profile = subprocess.run([sys.executable, ROOT / "bench/train/step_profile.py", folder], capture_output=True,
                             text=True, check=False)
    return profile.stdout + profile.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    parser.add_argument("--seconds", type=float, default=20, help="of each calibration")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--profiles", type=pathlib.Path, help="a folder of profiles to keep, and to use again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        profiles = options.profiles or folder
        profiles.mkdir(parents=True, exist_ok=True)
        print(f"{'job':16} {'devices':>7} {'measured':>10} {'predicted':>10} {'ratio':>6}")
        for job in JOBS:
            if options.only not in job[0]:
                continue
            profile = (profiles / f"host{job[1]}.textproto").resolve()
            if not profile.exists():
                hyperrun(options, "calibrate", "--devices", str(job[1]), "--out", profile, "--seconds",
                         str(options.seconds))
            path = folder / (job[0] + ".textproto")
            path.write_text(textproto(job, options, profile))
            hyperrun(options, "run", path, "--run-dir", folder / job[0], "--quiet")
            steps = json.loads((folder / job[0] / "report.json").read_text())["steps"]
            measured = statistics.median(s["time_ns"] for s in steps[3:])
            simulated = folder / (job[0] + "-simulated")
            simulated.mkdir()
            trace = ["--trace", simulated / "trace.pftrace"] if options.kinds else []
            predicted = json.loads(hyperrun(options, "sim", path, "--json", "--no-range", *trace))["steps"][0]["time_ns"]
            print(f"{job[0]:16} {job[1]:7} {measured / 1e6:7.2f} ms {predicted / 1e6:7.2f} ms "
                  f"{predicted / measured:6.2f}", flush=True)
            if options.kinds:
                print(kinds(folder / job[0]), "simulated:", kinds(simulated), sep="\n", flush=True)


if __name__ == "__main__":
    main()
