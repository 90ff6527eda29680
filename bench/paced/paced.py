#!/usr/bin/env python3
"""The paced clock beside the simulator: ten jobs on eight ranks that cover every parallel dimension, and three that
keep tensors beyond HBM.

    bench/paced/paced.py                          all of them, four measured steps each
    bench/paced/paced.py --only ring --steps 8    those whose name has "ring"

Each job runs on the machine of a profile (--profile, matrix384) with `run { clock: "paced" }`: real ranks, threads and
messages, each instruction lasting its simulated time, stretched by a dilation that leaves room for the real work.
The benchmark compares the median step, the wall over the dilation, with the simulator's makespan, the times of each
kind of instruction, and the executed peak bytes with the planned ones.

Standard library only; a table on standard output, JSON lines with --json."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DENSE = "layers: 4 hidden: 128 heads: 8 kv_heads: 8 ffn: 256 vocab: 512 sequence: 128"
EXPERTS = """name: "deepseek_v3" layers: 3 hidden: 128 heads: 8 ffn: 256 vocab: 512 sequence: 128
  latent { q_rank: 64 kv_rank: 32 nope_dim: 16 rope_dim: 8 value_dim: 16 }
  experts { count: 8 choices: 2 ffn: 64 shared: 1 dense_layers: 1 scoring: "sigmoid" bias_rate: 1e-3 }"""
#        name, mesh, presets, pipeline, micro-batches, training, model
JOBS = [
    ("dp8_zero1", "dp:8", "dp zero1", "", 1, "", DENSE),
    ("dp8_zero3", "dp:8", "dp zero3", "", 2, "", DENSE),
    ("tp8_sp", "tp:8", "tp sp", "", 1, "", DENSE),
    ("tp2d_4x2", "tpx:4 tpy:2", "tp2d", "", 1, "", DENSE),
    ("ulysses8", "cp:8", "cp", "", 1, "", DENSE),
    ("ring4_tp2", "ring:4 tp:2", "ring tp sp", "", 1, "", DENSE),
    ("pp4_dp2_1f1b", "pp:4 dp:2", "dp zero1", 'pipeline { axis: "pp" schedule: "1f1b" }', 4, "", DENSE),
    ("pp2_interleaved", "pp:2 dp:2 tp:2", "dp tp sp", 'pipeline { axis: "pp" schedule: "interleaved" chunks: 2 }', 4,
     "", DENSE),
    ("pp4_zero_bubble_bf16", "pp:4 tp:2", "tp sp", 'pipeline { axis: "pp" schedule: "zero_bubble" }', 4,
     'precision: "bfloat16" recompute { policy: "selective" }', DENSE),
    ("experts_dp2_ep2_tp2", "dp:2 ep:2 tp:2", "dp ep tp sp", "", 1, "", EXPERTS),
]
# Jobs with 12 MiB of HBM, of about 20 that they need.
BEYOND = [
    ("dp8_hyperoffload", "dp:8", "dp", "", 2, "", DENSE, "hyperoffload"),
    ("dp8_reactive", "dp:8", "dp", "", 2, "", DENSE, "reactive"),
    ("dp2_ep4_hyperoffload", "dp:2 ep:4", "dp ep", "", 2, "", EXPERTS, "hyperoffload"),
]


def textproto(job, options):
    name, mesh, presets, pipeline, micro_batches, training, model, *policy = job
    hbm, memory = ("12 MiB", f'memory {{ policy: "{policy[0]}" }}') if policy else ("48 MiB", "")
    axes = " ".join('mesh { name: "%s" size: %s }' % tuple(axis.split(":")) for axis in mesh.split())
    return f"""name: "{name}"
supernode {{ devices: 8 profile: "{options.profile}" hbm: "{hbm}" pool: "2 GiB" }}
model {{ {model} }}
parallel {{ {axes} presets: [{", ".join(f'"{p}"' for p in presets.split())}] {pipeline} }}
{memory}
data {{ corpus: "{options.corpus}" }}
training {{ steps: {options.steps + 1} batch: 16 micro_batches: {micro_batches} lr: 1e-3 {training} }}
run {{ clock: "paced" dilation: {options.dilation} }}
"""


def run(job, options, folder):
    path = folder / (job[0] + ".textproto")
    path.write_text(textproto(job, options))
    command = [options.hyperrun, "run", path, "--run-dir", folder / job[0], "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{job[0]}: {done.stderr}{done.stdout}")
    return json.loads((folder / job[0] / "report.json").read_text())


def off(measured, predicted):
    return measured / predicted - 1 if predicted else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    parser.add_argument("--profile", default="matrix384")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--dilation", type=float, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"{'job':22} {'dilation':>9} {'predicted':>12} {'measured':>12} {'error':>8}  peak  worst kind of instruction")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for job in JOBS + BEYOND:
            if options.only not in job[0]:
                continue
            report = run(job, options, pathlib.Path(folder))
            paced = report["paced"]
            error = off(paced["measured_ns"], paced["predicted_ns"])
            worst = max(worst, abs(error))
            kinds = [(off(i["measured_ns"], i["predicted_ns"]), i["instruction"]) for i in paced["instructions"]]
            kind = max(kinds, key=lambda k: abs(k[0]))
            as_planned = "equal" if not report["totals"]["devices_off_plan"] else "OFF"
            print(f"{job[0]:22} {paced['dilation']:9g} {paced['predicted_ns'] / 1e3:9.1f} us "
                  f"{paced['measured_ns'] / 1e3:9.1f} us {100 * error:+7.2f}%  {as_planned}  "
                  f"{kind[1]} {100 * kind[0]:+.2f}%", flush=True)
            if options.json:
                with open(options.json, "a", encoding="utf-8") as out:
                    out.write(json.dumps({"job": job[0], **paced}) + "\n")
    print(f"largest error of a step: {100 * worst:.2f}%")


if __name__ == "__main__":
    main()
