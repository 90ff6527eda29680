#!/usr/bin/env python3
"""Memory and time of a mixture of experts on 64 dies whose activations go to the host (simulated): the job of
examples/qwen3_30b_a3b_swap.textproto without a limit, and with so many GiB less HBM than it needs.

Two points of the published step are public: 52.27 GiB and 1.972 s without swapping, and 3.11 GiB less at 3.6 % more
time with 1.6 GiB of swap. The other budgets (--less) are a choice of ours.

    bench/offload/host_swap.py                    the job as it is, one sequence a die
    bench/offload/host_swap.py --sequences 4      with four"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GIB = 2**30
PUBLISHED = {0: (52.27, 0, 1.972), 3.11: (52.27 - 3.11, 1.6, 1.972 * 1.036)}  # GiB less: GiB of HBM, GiB of swap, seconds
MOVED = {"activations": 'tensors: ["activations"]', "all tensors": ""}


def simulate(options, hbm, memory):
    """Returns the step, or the reason of its refusal. It does not wait for remedies."""
    text = (ROOT / "examples/qwen3_30b_a3b_swap.textproto").read_text()
    dies = int(re.search(r"devices: (\d+)", text)[1])
    for pattern, by in ((r'hbm: "[^"]*"', hbm), (r"memory {.*}", memory), (r'corpus: "[^"]*"', 'corpus: "none"'),
                        (r"batch: \d+", f"batch: {dies * options.sequences}")):
        text = re.sub(pattern, by, text)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as out:
        job = pathlib.Path(folder) / "job.textproto"
        job.write_text(text)
        with subprocess.Popen([options.hyperrun, "sim", job, "--json", "--no-range"], stdout=out, stderr=subprocess.PIPE,
                              text=True) as process:
            said = [line for line in process.stderr if not (line.startswith("does not fit") and process.kill())]
        if process.returncode:
            return {"refused": "".join(said).strip() or "does not fit"}
        out.seek(0)
        report = json.load(out)
    peak = {tier: max((m["planned_peak_bytes"] for d in report["devices"] for m in d["memory"] if m["tier"] == tier),
                      default=0) for tier in ("hbm", "pool")}
    part = max(report["simulated"]["parts"], key=lambda p: p["transfer_ns"])
    return {"seconds": report["time_ns"] / 1e9, "exposed": part["transfer_ns"] / 1e9,
            "computing": part["compute_ns"] / 1e9, **peak}


def row(name, hbm, less, pool, seconds, more, rest=""):
    return f"{name:24} {hbm:6.2f} GiB  {less:+6.2f}  {pool:6.2f} GiB  {1e3 * seconds:8.1f} ms  {more:+7.1%}  {rest}"


def line(name, step, free):
    if "refused" in step:
        return f"{name:24} {step['refused'].splitlines()[0]}"
    computing = step["computing"] - free["computing"]
    return row(name, step["hbm"] / GIB, (step["hbm"] - free["hbm"]) / GIB, step["pool"] / GIB, step["seconds"],
               step["seconds"] / free["seconds"] - 1, f"{1e3 * step['exposed']:6.1f} ms  {1e3 * computing:+6.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--less", type=float, nargs="+", default=[0.8, 1.6, 3.11, 4, 6], help="GiB below the peak")
    parser.add_argument("--sequences", type=int, default=1, help="of a die")
    parser.add_argument("--json", help="a file that each step is added to")
    options = parser.parse_args()
    free = simulate(options, "", "")
    if "refused" in free:
        sys.exit(free["refused"])
    print(f"{'':24} {'HBM a die':>10}  {'':>6}  {'pool a die':>10}  {'step':>11}  {'':>7}  {'exposed':>9}  "
          "more computing")
    print(line("as it is", free, free), flush=True)
    steps = [{"less": 0, **free}]
    for moved, tensors in MOVED.items():
        for less in options.less:
            budget = int(free["hbm"] - less * GIB)
            step = simulate(options, f'hbm: "{budget} B"', f'memory {{ policy: "hyperoffload" {tensors} }}')
            steps.append({"moved": moved, "less": less, **step})
            print(line(f"{moved}, {less:g} less", step, free), flush=True)
    for less, (memory, swap, seconds) in PUBLISHED.items():
        print(row(f"published, {less:g} less", memory, -less, swap, seconds, seconds / PUBLISHED[0][2] - 1))
    if options.json:
        with open(options.json, "a", encoding="utf-8") as out:
            out.writelines(json.dumps({"sequences": options.sequences, **step}) + "\n" for step in steps)


if __name__ == "__main__":
    main()
