#!/usr/bin/env python3
"""A model with encoders of pictures and sounds, in several places and both orders: the time of a step,
and the idle share of the devices.

    bench/mpmd/omni.py             simulated at full size
    bench/mpmd/omni.py --paced     a small one, executed by eight ranks on the paced clock, beside the simulator
    bench/mpmd/omni.py --spread    simulated at full size: equal encoding in each step, spread more and more unevenly

Simulated: a Llama-3-8B in four stages of four dies each of a Matrix384 (tensor and sequence parallel), 16 sequences of 8,192 in
eight micro-batches, all layers computed once more in the backward pass; an encoder of pictures as large as ViT-bigG (48
layers of 1,664; 1,024 patches a picture), one of sounds (16 layers of 1,024). Its pictures are the 64 x 64 pixels of
data/omni in patches of 2 x 2, so that there are as many as of a larger picture; the number of samples of a sequence is random.

  first stage, static   encoders on the devices of the first stage, of which they are a part: one forward, one backward
  all, static           encoders on all devices: all forward passes, the text model, all backward passes
  all, dynamic          the same, as things become ready
  first stage, dynamic  encoders on the devices of the first stage, as things become ready

For each way the text model's layers are cut into stages in several ways, and the fastest by the simulator counts: a first
stage that also encodes then has fewer layers.

With `--spread` samples are made up: each step has as much to encode as any other, in the mean two pictures and 16 items of
sounds a sequence. Only its distribution differs: sequences have more samples, of which fewer have a picture, or a sound, or
both; or there are fewer sounds, and longer ones.

Needs tools/omni_data, but for `--spread`. Standard library only."""
import argparse
import dataclasses
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import wave
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
WAYS = [("first stage, static", True, "static"), ("all, static", False, "static"), ("all, dynamic", False, "dynamic"),
        ("first stage, dynamic", True, "dynamic")]


@dataclasses.dataclass
class Load:
    least: int  # fewest samples of a sequence
    most: int
    manifest: pathlib.Path = ROOT / "data/omni/manifest.jsonl"
    words: str = ""
    seed: int = 1

    def __str__(self):
        return self.words or f"{self.least} to {self.most} samples"


LOADS = [Load(1, 1), Load(1, 2), Load(1, 4), Load(1, 6), Load(6, 6)]
# Samples of a sequence, and parts of these: with picture and sound, a picture alone, a sound alone, neither.
SPREADS = [("even", 2, (1, 0, 0, 0)),
           ("pictures vary", 4, (1, 0, 1, 0)), ("pictures vary more", 8, (1, 0, 3, 0)),
           ("sounds vary", 2, (1, 1, 0, 0)), ("sounds vary more", 2, (1, 3, 0, 0)),
           ("both vary", 4, (1, 1, 1, 1)), ("both vary more", 8, (1, 3, 3, 9)),
           ("both vary together", 4, (1, 0, 0, 1)), ("both vary more together", 8, (1, 0, 0, 3))]
ITEMS = {"pictures": 2, "sounds": 16}  # mean number in a sequence


def job(size, cut, load, first_stage, order, clock=""):
    stage = size["tp"]
    devices = size["pp"] * stage
    own = stage if first_stage else devices
    stages = " ".join(f"stages {{ device: {d} layers: {n} }}" for d, n in enumerate(cut))
    mesh = f'parallel {{ mesh {{ name: "dp" size: {own} }} presets: "dp" }}'
    return f"""name: "omni"
{size["machine"].replace("DEVICES", str(devices))}
{size["model"]}
data {{ samples: "{load.manifest}" }}
training {{ steps: {size["steps"]} batch: {size["batch"]} micro_batches: {size["micro_batches"]} lr: 1e-4 {size["training"]} }}
media {{ least: {load.least} most: {load.most} order: "{order}" evaluate: 0 }}
programs {{ name: "pictures" does: "encode" devices: {own} encoder {{ {size["pictures"]} }} {mesh} }}
programs {{ name: "sounds" does: "encode" devices: {own} encoder {{ {size["sounds"]} }} {mesh} }}
programs {{ name: "text" does: "train" devices: {devices} inputs: ["pictures", "sounds"]
  parallel {{ mesh {{ name: "pp" size: {size["pp"]} }} mesh {{ name: "tp" size: {stage} }} presets: ["tp", "sp"]
             pipeline {{ axis: "pp" {stages} }} }} }}
run {{ seed: {load.seed} {clock} }}
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


def simulated(options, size, load, way, folder, known):
    """`known`: forecasts so far, each for both orders."""
    _, first_stage, order = way
    path = folder / "job.textproto"
    rows = []
    for cut in size["cuts"]:
        key = (str(load), first_stage, cut)
        if key not in known:
            path.write_text(job(size, cut, load, first_stage, order))
            known[key] = json.loads(run([options.hyperrun, "sim", path, "--json", "--no-range"]))
        forecast = known[key]
        found = next(o for o in forecast["orders"] if o["order"] == order)
        items = {i["encoder"]: i for i in forecast["items"]}
        rows.append({"step": found["step_seconds"], "bubble": found["bubble"], "items": items, "cut": cut})
    return min(rows, key=lambda row: row["step"])


def png():
    """A white picture of 64 x 64."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress((b"\0" + b"\xff" * 192) * 64)) + chunk(b"IEND", b""))


def made_up(options, size, spread, folder):
    """The samples of a step, as many as it draws, so that each step draws all, and the first seed for which all samples fit
    into their sequences."""
    words, each, parts = spread
    folder = folder / words.replace(" ", "-")
    folder.mkdir()
    count = size["batch"] * each
    sounds = count * (parts[0] + parts[2]) // sum(parts)
    (folder / "picture.png").write_bytes(png())
    with wave.open(str(folder / "sound.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        # 64 frames of 10 ms are an item.
        sound.writeframes(bytes(2 * 64 * 160 * (ITEMS["sounds"] * size["batch"] // sounds)))
    has = [{"image": "picture.png", "audio": "sound.wav"}, {"image": "picture.png"}, {"audio": "sound.wav"}, {}]
    lines = [{"id": f"{part}-{i}", "text": "a", "category": "a", "split": "train", **has[part]}
             for part in range(4) for i in range(count * parts[part] // sum(parts))]
    manifest = folder / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    a_micro_batch = size["batch"] // size["micro_batches"]
    for seed in range(1, 200):
        load = Load(each, each, manifest, words, seed)
        (folder / "job.textproto").write_text(job(size, size["cuts"][0], load, False, "dynamic"))
        forecast = json.loads(run([options.hyperrun, "sim", folder / "job.textproto", "--json", "--no-range"]))
        if all(i["mean"] == a_micro_batch * ITEMS[i["encoder"]] for i in forecast["items"]):
            return load
    sys.exit(f"{words}: sequences are too short")


def executed(options, size, cut, load, way, folder):
    _, first_stage, order = way
    path = folder / "job.textproto"
    path.write_text(job(size, cut, load, first_stage, order, f'clock: "paced" dilation: {options.dilation}'))
    out = run([options.hyperrun, path, "--quiet", "--run-dir", folder / "run"])
    report = json.loads((pathlib.Path(out.rsplit("run directory: ", 1)[1].strip()) / "report.json").read_text())
    # The first and the last step are left out: they begin and end with nothing under way.
    step = statistics.mean(report["step_seconds"][1:-1]) / options.dilation
    return {"step": step, "bubble": 1 - report["utilisation"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--spread", action="store_true")
    parser.add_argument("--dilation", type=float, default=150)
    parser.add_argument("--loads", type=int, default=len(LOADS), help="so many of the loads, the one with most to encode last")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.spread and options.paced:
        parser.error("--spread is simulated")
    size = SMALL if options.paced else FULL
    rows, known = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        spreads = (made_up(options, size, spread, folder) for spread in SPREADS)
        for load in spreads if options.spread else LOADS[len(LOADS) - options.loads:]:
            for way in WAYS:
                row = {"load": str(load), "way": way[0], "simulated": simulated(options, size, load, way, folder, known)}
                if options.paced:
                    row["paced"] = executed(options, size, row["simulated"]["cut"], load, way, folder)
                rows.append(row)
                if not options.json:
                    show(row, rows, options.paced)
    if options.json:
        print(json.dumps(rows, indent=2))


def show(row, rows, paced):
    base = next(r for r in rows if r["load"] == row["load"])
    if base is row:
        items = [f'{i["least"]} to {i["most"]} (mean {i["mean"]:.1f}) of {encoder}'
                 for encoder, i in row["simulated"]["items"].items()]
        print(f'{row["load"]}; items a micro-batch: {", ".join(items)}')
    for what in ["simulated"] + (["paced"] if paced else []):
        own, of_base = row[what], base[what]
        print(f'  {row["way"]:<22} {what:<10} {1e3 * own["step"]:9.2f} ms  bubble {100 * own["bubble"]:5.1f} %  '
              f'{100 * (of_base["bubble"] - own["bubble"]):+5.1f} points  {of_base["step"] / own["step"]:.3f}x  layers {"/".join(map(str, row["simulated"]["cut"]))}', flush=True)


if __name__ == "__main__":
    main()
