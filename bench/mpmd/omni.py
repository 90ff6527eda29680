#!/usr/bin/env python3
"""A model with encoders of pictures and sounds, in several places and both orders: how long a step takes, and in how much of
the time devices stand idle.

    bench/mpmd/omni.py             simulated at full size
    bench/mpmd/omni.py --paced     a small one, executed by eight ranks on the paced clock, beside the simulator

Simulated: a Llama-3-8B in four stages of four dies each of a Matrix384 (tensor and sequence parallel), 16 sequences of 8,192 in
eight micro-batches, all layers computed once more in the backward pass; an encoder of pictures as large as ViT-bigG (48
layers of 1,664; 1,024 patches a picture), one of sounds (16 layers of 1,024). Its pictures are the 64 x 64 pixels of
data/omni in patches of 2 x 2, so that there are as many as of a larger picture; how many samples a sequence has is drawn.

  first stage, static   encoders on the devices of the first stage, of which they are a part: one forward, one backward
  all, static           encoders on all devices: all that they read, the text model, all that they learn
  all, dynamic          the same, as things become ready
  first stage, dynamic  encoders on the devices of the first stage, as things become ready

For each way the text model's layers are cut into stages in several ways, and the one that is the fastest by the simulator
counts: a first stage that encodes as well has fewer layers then.

Needs tools/omni_data. Standard library only."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAYS = [("first stage, static", True, "static"), ("all, static", False, "static"), ("all, dynamic", False, "dynamic"),
        ("first stage, dynamic", True, "dynamic")]
LOADS = [(1, 1), (1, 2), (1, 4), (1, 6), (6, 6)]


def job(size, cut, least, most, first_stage, order, clock=""):
    stage = size["tp"]
    devices = size["pp"] * stage
    own = stage if first_stage else devices
    stages = " ".join(f"stages {{ device: {d} layers: {n} }}" for d, n in enumerate(cut))
    mesh = f'parallel {{ mesh {{ name: "dp" size: {own} }} presets: "dp" }}'
    return f"""name: "omni"
{size["machine"].replace("DEVICES", str(devices))}
{size["model"]}
data {{ samples: "{ROOT}/data/omni/manifest.jsonl" }}
training {{ steps: {size["steps"]} batch: {size["batch"]} micro_batches: {size["micro_batches"]} lr: 1e-4 {size["training"]} }}
media {{ least: {least} most: {most} order: "{order}" evaluate: 0 }}
programs {{ name: "pictures" does: "encode" devices: {own} encoder {{ {size["pictures"]} }} {mesh} }}
programs {{ name: "sounds" does: "encode" devices: {own} encoder {{ {size["sounds"]} }} {mesh} }}
programs {{ name: "text" does: "train" devices: {devices} inputs: ["pictures", "sounds"]
  parallel {{ mesh {{ name: "pp" size: {size["pp"]} }} mesh {{ name: "tp" size: {stage} }} presets: ["tp", "sp"]
             pipeline {{ axis: "pp" {stages} }} }} }}
{clock}
"""


FULL = {
    "cuts": [(8, 8, 8, 8), (8, 8, 7, 9), (7, 8, 8, 9), (6, 8, 8, 10), (5, 9, 9, 9), (4, 9, 9, 10), (3, 9, 10, 10),
             (2, 10, 10, 10)],
    "pp": 4, "tp": 4, "steps": 16, "batch": 16, "micro_batches": 8,
    "machine": 'supernode { profile: "matrix384" devices: DEVICES }',
    "model": "model { layers: 32 hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336 vocab: 128256 sequence: 8192 }",
    "training": 'precision: "bfloat16"',
    "pictures": 'input: "image" patch: 2 tokens: 1024 items: 1 learns: "category" layers: 48 hidden: 1664 heads: 16',
    "sounds": 'input: "audio" frames: 1 tokens: 64 items: 1 layers: 16 hidden: 1024 heads: 16',
}
SMALL = {
    "cuts": [(2, 2, 2, 2), (2, 2, 1, 3), (1, 2, 2, 3)],
    "pp": 4, "tp": 2, "steps": 10, "batch": 8, "micro_batches": 8,
    "machine": 'supernode { devices: DEVICES hbm: "64 MiB" cube_flops: "60 GFLOP/s" vector_flops: "60 GFLOP/s" '
               'link_bandwidth: "8 GB/s" }',
    "model": "model { layers: 8 hidden: 128 heads: 4 vocab: 258 sequence: 256 }",
    "training": "",
    "pictures": 'input: "image" patch: 8 tokens: 64 items: 1 learns: "category" layers: 3 hidden: 160 heads: 4',
    "sounds": 'input: "audio" frames: 4 tokens: 8 items: 1 layers: 2 hidden: 64 heads: 4',
}


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr + done.stdout)
    return done.stdout


def simulated(options, size, load, way, folder):
    _, first_stage, order = way
    path = folder / "job.textproto"
    rows = []
    for cut in size["cuts"]:
        path.write_text(job(size, cut, *load, first_stage, order))
        forecast = json.loads(run([options.hyperrun, "sim", path, "--json"]))
        found = next(o for o in forecast["orders"] if o["order"] == order)
        pictures = next(i for i in forecast["items"] if i["encoder"] == "pictures")
        rows.append({"step": found["step_seconds"], "bubble": found["bubble"], "items": pictures, "cut": cut})
    return min(rows, key=lambda row: row["step"])


def executed(options, size, cut, load, way, folder):
    _, first_stage, order = way
    path = folder / "job.textproto"
    path.write_text(job(size, cut, *load, first_stage, order, f'run {{ clock: "paced" dilation: {options.dilation} }}'))
    out = run([options.hyperrun, path, "--quiet", "--run-dir", folder / "run"])
    report = json.loads((pathlib.Path(out.rsplit("run directory: ", 1)[1].strip()) / "report.json").read_text())
    # The first step begins with nothing under way, the last one ends so.
    step = statistics.mean(report["step_seconds"][1:-1]) / options.dilation
    return {"step": step, "bubble": 1 - report["utilisation"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--dilation", type=float, default=150)
    parser.add_argument("--loads", type=int, default=len(LOADS), help="so many of the loads, the one with most to encode last")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    size = SMALL if options.paced else FULL
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for load in LOADS[len(LOADS) - options.loads:]:
            for way in WAYS:
                row = {"load": load, "way": way[0], "simulated": simulated(options, size, load, way, folder)}
                if options.paced:
                    row["paced"] = executed(options, size, row["simulated"]["cut"], load, way, folder)
                rows.append(row)
                if not options.json:
                    show(row, rows, options.paced)
    if options.json:
        print(json.dumps(rows, indent=2))


def show(row, rows, paced):
    base = next(r for r in rows if r["load"] == row["load"])
    items = row["simulated"]["items"]
    head = f'{row["load"][0]} to {row["load"][1]} samples, {items["least"]} to {items["most"]} pictures a micro-batch'
    if base is row:
        print(head)
    for what in ["simulated"] + (["paced"] if paced else []):
        own, of_base = row[what], base[what]
        print(f'  {row["way"]:<22} {what:<10} {1e3 * own["step"]:9.2f} ms  bubble {100 * own["bubble"]:5.1f} %  '
              f'{100 * (of_base["bubble"] - own["bubble"]):+5.1f} points  {of_base["step"] / own["step"]:.3f}x  layers {"/".join(map(str, row["simulated"]["cut"]))}', flush=True)


if __name__ == "__main__":
    main()
