#!/usr/bin/env python3
"""The gains of sweep.py, executed: the best layout that fits without offloading and the best with it, each as a scale model on eight ranks of the paced clock (docs/job.md#shrink).

    bench/offload/paced_pairs.py                     all points
    bench/offload/paced_pairs.py --only 524288       those of this sequence

Real ranks, threads, messages and transfers to the pool; each instruction lasts its simulated time, stretched by one
dilation for both of a pair. The table compares the median step, wall over dilation, with the simulated one, and the
gain with the simulated gain. Run it on a quiet machine: every delay counts in full."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from jobs import PROFILE, job_text, profile_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUPERNODE = f'supernode {{ devices: 8 profile: "{PROFILE}" hbm: "64 GiB" pool: "2 TiB" }}'
SHRINK = "shrink { width: 32 sequence: 4096 vocab: 64 }"
# model, sequence, tokens a device; layout, micro-batches, recomputation and policy of both, as found by sweep.py
PAIRS = [("llama8b", 262144, 32768, ("ring8 zero3", 1, "full of 22", "none"),
          ("cp8 zero1", 1, "selective", "activations")),
         ("llama8b", 524288, 65536, ("cp8 zero3", 1, "full of 30", "none"),
          ("ring8 zero1", 1, "selective", "activations")),
         ("deepseek", 65536, 32768, ("cp2 tp4 zero3 folded", 4, "full of 2", "none"),
          ("cp2 tp4 zero1 folded", 4, "selective", "hyperoffload"))]


def run(point, side, options, folder):
    """The paced steps in report.json of a side."""
    folder.mkdir()
    job = folder / "job.textproto"
    (folder / PROFILE).write_text(profile_text())
    text = job_text(point, *side)
    for pattern, by in (("supernode {.*}", SUPERNODE), ('corpus: "none"', f'corpus: "{options.corpus}"'),
                        ("steps: 1 ", f"steps: {options.steps + 1} ")):
        text = re.sub(pattern, by, text)
    job.write_text(text + f'run {{ clock: "paced" dilation: {options.dilation} {SHRINK} }}\n')
    command = [options.hyperrun, "run", job, "--run-dir", folder / "run", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{side}: {done.stderr}{done.stdout}")
    report = json.loads((folder / "run/report.json").read_text())
    return {**report["paced"], "off plan": report["totals"]["devices_off_plan"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--dilation", type=float, default=0, help="0: each job chooses its own")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", help="a file that each run is added to")
    options = parser.parse_args()
    for model, sequence, tokens, *sides in PAIRS:
        if options.only not in str(sequence):
            continue
        point = {"model": model, "sequence": sequence, "tokens": tokens, "batch": tokens * 8 // sequence}
        seconds = {"predicted": [], "measured": []}
        with tempfile.TemporaryDirectory() as folder:
            for i, side in enumerate(sides):
                paced = run(point, side, options, pathlib.Path(folder) / str(i))
                for what, list_of in seconds.items():
                    list_of.append(paced[f"{what}_ns"] / 1e9)
                print(f"{model} {sequence} x {tokens}  {' '.join(map(str, side)):40} dilation {paced['dilation']:g}  "
                      f"simulated {seconds['predicted'][-1]:8.3f} s  measured {seconds['measured'][-1]:8.3f} s  "
                      f"{seconds['measured'][-1] / seconds['predicted'][-1] - 1:+.2%}"
                      + ("" if not paced["off plan"] else "  OFF PLAN"), flush=True)
                if options.json:
                    with open(options.json, "a", encoding="utf-8") as out:
                        out.write(json.dumps({**point, "side": side, **paced}) + "\n")
        gains = {what: 1 - with_ / without for what, (without, with_) in seconds.items()}
        print(f"{'':28}gain: simulated {gains['predicted']:.1%}, measured {gains['measured']:.1%}", flush=True)


if __name__ == "__main__":
    main()
