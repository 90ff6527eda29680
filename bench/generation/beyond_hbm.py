#!/usr/bin/env python3
"""Passes of a generation whose cache lies partly beyond HBM, simulated: Llama 8B in bfloat16 on one die of the
matrix384 profile, prompts taken 4,096 tokens at a time. For each context and budget: HBM, and how much longer a
pass of a sequence as long as the context takes than with room for everything.

usage: bench/generation/beyond_hbm.py [path of hyperrun]
"""
import json
import subprocess
import sys
import tempfile

JOB = """name: "generation"
supernode {{ devices: 1 profile: "matrix384" hbm: "{hbm} GiB" pool: "2048 GiB" }}
model {{ layers: 32 hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336 vocab: 128256 sequence: 8192 }}
memory {{ policy: "{policy}" tensors: ["cache"] }}
data {{ corpus: "none" }}
training {{ steps: 1 batch: 1 lr: 1e-3 precision: "bfloat16" }}
inference {{ slots: 1 context: {context} chunk: 4096 }}
"""


def passes(hyperrun, **fields):
    with tempfile.NamedTemporaryFile("w", suffix=".textproto") as job:
        job.write(JOB.format(**fields))
        job.flush()
        run = subprocess.run([hyperrun, "sim", job.name, "--generate", "--json"], capture_output=True, text=True)
    return json.loads(run.stdout) if run.returncode == 0 else None


def main():
    hyperrun = sys.argv[1] if len(sys.argv) > 1 else "build/bin/hyperrun"
    print(f"{'context':>8} {'budget':>7} {'policy':>13} {'HBM GiB':>8} {'of all':>7} {'prefill':>9} {'decode':>9}")
    for context in (65536, 131072, 262144, 524288):
        roomy = passes(hyperrun, hbm=512, policy="none", context=context)
        for hbm, policy in ((24, "none"), (24, "reactive"), (24, "hyperoffload"), (32, "none"), (32, "hyperoffload")):
            found = passes(hyperrun, hbm=hbm, policy=policy, context=context)
            head = f"{context:>8} {hbm:>3} GiB {policy:>13}"
            if found is None:
                print(f"{head}  does not fit")
                continue
            peak = max(p["hbm_peak_bytes"] for p in found.values()) / 2**30
            whole = max(p["hbm_peak_bytes"] for p in roomy.values()) / 2**30
            longer = [100 * (found[p]["ns"] / roomy[p]["ns"] - 1) for p in ("prefill", "decode")]
            print(f"{head} {peak:>8.2f} {100 * (peak / whole - 1):>+6.1f}% {longer[0]:>+8.2f}% {longer[1]:>+8.0f}%")


if __name__ == "__main__":
    main()
