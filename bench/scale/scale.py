#!/usr/bin/env python3
"""How start-up, step and memory grow with the number of devices on this host.

A small Llama (two layers of width 64, tensor parallelism over 8 devices, data parallelism over the rest) trains
some steps on each number of devices. The table tells the seconds from the command to the end of the first step,
the median of the further steps, the ranks, and the memory of a device beside its HBM: the proportional share of
all ranks' memory over the devices, largest at any moment, without the planned peak of HBM.

  bench/scale/scale.py                     4 to 768 devices
  bench/scale/scale.py --devices 768 --ranks 8 --rounds 3
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

JOB = """name: "scale"
supernode {{ devices: {devices} hbm: "8 MiB" }}
model {{ layers: 2 hidden: 64 heads: 8 kv_heads: 8 vocab: 1024 sequence: 32 tied_head: true }}
parallel {{ mesh {{ name: "dp" size: {dp} }} mesh {{ name: "tp" size: {tp} }} presets: ["dp", "tp", "sp"] }}
data {{ corpus: "{corpus}" }}
training {{ steps: {steps} batch: {dp} lr: 3e-3 }}
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=str(ROOT / "build/bin/hyperrun"), help="the program")
    parser.add_argument("--devices", type=int, nargs="+", default=[4, 8, 16, 32, 64, 128, 256, 384, 768])
    parser.add_argument("--ranks", type=int, default=0, help="ranks that host them (default: hyperrun chooses)")
    parser.add_argument("--steps", type=int, default=11)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each; the table has their medians")
    parser.add_argument("--corpus", default=str(ROOT / "data/king-james.txt"))
    return parser.parse_args()


def ranks_of(folder):
    """The ranks of the run that was started for `folder`: processes with a rank and that job."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            words = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            environment = pathlib.Path("/proc", entry, "environ").read_bytes()
        except OSError:
            continue
        if b"run" in words and b"OMPI_COMM_WORLD_RANK=" in environment and str(folder).encode() in b" ".join(words):
            found.append(entry)
    return found


class Memory(threading.Thread):
    """Watches the ranks of a run. most: the largest sum of their proportional shares, in bytes."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.most, self.ranks, self.ended = folder, 0, 0, False

    def run(self):
        while not self.ended:
            total, ranks = 0, ranks_of(self.folder)
            for rank in ranks:
                try:
                    text = pathlib.Path("/proc", rank, "smaps_rollup").read_text()
                    total += 1024 * int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])
                except (OSError, TypeError):
                    pass
            self.most, self.ranks = max(self.most, total), max(self.ranks, len(ranks))
            time.sleep(0.1)


def measure(a, devices, watched):
    tp = min(8, devices)
    with tempfile.TemporaryDirectory(prefix="hyperrun-scale-") as folder:
        job = pathlib.Path(folder, "job.textproto")
        job.write_text(JOB.format(devices=devices, dp=devices // tp, tp=tp, corpus=a.corpus, steps=a.steps))
        memory = Memory(folder)
        if watched:
            memory.start()
        command = [a.hyperrun, str(job), "--run-dir", str(pathlib.Path(folder, "run")), "--quiet"]
        begin = time.time()
        done = subprocess.run(command + (["--ranks", str(a.ranks)] if a.ranks else []), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        memory.ended = True
        steps = [json.loads(line) for line in pathlib.Path(folder, "run/metrics.jsonl").read_text().splitlines()]
        first = steps[0]["time_ns"] / 1e9 - begin
        further = statistics.median(s["step_seconds"] for s in steps[1:])
        beside = memory.most / devices - steps[0]["hbm_peak_bytes"]
        return first, further, memory.ranks, beside


def main():
    a = arguments()
    print("| devices | ranks | first step, s | further steps, ms | memory beside HBM, MiB a device |")
    print("|---|---|---|---|---|")
    for devices in a.devices:
        # Reading the memory of processes costs time, so one run is watched and the others are timed.
        _, _, ranks, beside = measure(a, devices, True)
        timed = [measure(a, devices, False) for _ in range(a.rounds)]
        first, further = (statistics.median(t[i] for t in timed) for i in (0, 1))
        print(f"| {devices} | {ranks} | {first:.2f} | {1e3 * further:.1f} | {beside / 2**20:.2f} |", flush=True)


if __name__ == "__main__":
    main()
