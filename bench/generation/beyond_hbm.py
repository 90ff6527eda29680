#!/usr/bin/env python3
"""Passes of a generation whose cache lies partly beyond HBM, simulated: Llama 8B in bfloat16 on one die of the
matrix384 profile, prompts taken 4,096 tokens at a time. The table has, for each context and budget, the HBM
and the slowdown of a pass of a sequence as long as the context, relative to a pass with room for everything.

    bench/generation/beyond_hbm.py --context 131072     one context of four"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/offload"))
from jobs import ENDLESS, PROFILE  # noqa: E402
from simulated import simulate  # noqa: E402

JOB = """name: "generation"
supernode {{ devices: 1 profile: "{profile}" hbm: "{hbm}" pool: "2 TiB" }}
model {{ layers: 32 hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336 vocab: 128256 sequence: 8192 }}
memory {{ {memory} }}
data {{ corpus: "none" }}
training {{ steps: 1 batch: 1 lr: 1e-3 precision: "bfloat16" }}
inference {{ slots: 1 context: {context} chunk: 4096 }}
"""
PASSES = ("prefill", "decode")
BUDGETS = ((24, "none"), (24, "reactive"), (24, "hyperoffload"), (32, "none"), (32, "hyperoffload"))


def passes(options, hbm, policy, context):
    memory = "" if policy == "none" else f'policy: "{policy}" tensors: ["cache"]'
    return simulate(options.hyperrun, JOB.format(profile=PROFILE, hbm=hbm, memory=memory, context=context), "--generate")


def peak(found):
    return max(found[p]["hbm_peak_bytes"] for p in PASSES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--context", type=int, nargs="+", default=[65536, 131072, 262144, 524288])
    options = parser.parse_args()
    print(f"{'context':>8} {'budget':>7} {'policy':>13} {'HBM GiB':>8} {'of all':>7} {'prefill':>9} {'decode':>9}")
    for context in options.context:
        roomy = passes(options, ENDLESS, "none", context)
        for hbm, policy in BUDGETS:
            found = passes(options, f"{hbm} GiB", policy, context)
            head = f"{context:>8} {hbm:>3} GiB {policy:>13}"
            if isinstance(found, str):
                print(f"{head}  {found}", flush=True)
                continue
            longer = [100 * (found[p]["ns"] / roomy[p]["ns"] - 1) for p in PASSES]
            print(f"{head} {peak(found) / 2**30:>8.2f} {100 * (peak(found) / peak(roomy) - 1):>+6.1f}% "
                  f"{longer[0]:>+8.2f}% {longer[1]:>+8.0f}%", flush=True)


if __name__ == "__main__":
    main()
