"""Small jobs of every kind, for random_faults.py: trainings under twelve layouts, learning from rewards, and media."""

import json
import math
import pathlib
import struct
import subprocess
import wave
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = 'run {{ checkpoint_every: {every} heartbeat: "{heartbeat}" {run} }}\n'

TRAINING = """supernode {{ devices: {devices} hbm: "64 MiB" pool: "64 MiB" }}
model {{ layers: 4 hidden: 32 heads: 4 kv_heads: 4 vocab: 320 sequence: 32 {model} }}
parallel {{ {parallel} }}
memory {{ policy: "{memory}" }}
data {{ corpus: "corpus.txt" }}
training {{ steps: {steps} batch: 8 {training} lr: 3e-3 warmup_steps: 2 }}
"""

# A training whose checkpoint gives REINFORCEMENT its tokenizer and its first weights.
TEXT = """name: "text"
supernode { devices: 1 hbm: "32 MiB" }
model { layers: 1 hidden: 32 heads: 2 vocab: 258 sequence: 16 tied_head: true }
data { corpus: "coins.txt" }
training { steps: 20 batch: 8 lr: 1e-2 }
run { directory: "text" }
"""

REINFORCEMENT = """supernode {{ devices: 4 hbm: "32 MiB" }}
model {{ layers: 1 hidden: 32 heads: 2 vocab: 258 sequence: 16 tied_head: true }}
data {{ tasks: "tasks.jsonl" }}
training {{ steps: {steps} batch: 16 lr: 5e-3 policy {{ clip: 0.2 kl: 0.01 }} }}
reinforcement {{ samples: 4 tokens: 2 held_back: 4 evaluate_every: 3 }}
programs {{ name: "actor" does: "generate" devices: 2 weights: "learner" inference {{ slots: 16 page: 4 }}
  parallel {{ mesh {{ name: "dp" size: 2 }} presets: "dp" }} }}
programs {{ name: "judge" does: "reward" inputs: "actor" }}
programs {{ name: "before" does: "score" first_device: 2 devices: 2 inputs: "actor"
  parallel {{ mesh {{ name: "tp" size: 2 }} presets: "tp" }} }}
programs {{ name: "learner" does: "train" first_device: 2 devices: 2 inputs: ["actor", "judge", "before"]
  parallel {{ mesh {{ name: "dp" size: 2 }} presets: ["dp", "zero1"] }} }}
"""

MEDIA = """supernode {{ devices: 5 hbm: "16 MiB" }}
model {{ layers: 2 hidden: 32 heads: 2 vocab: 257 sequence: 48 }}
data {{ samples: "samples.jsonl" }}
training {{ steps: {steps} batch: 8 micro_batches: 4 lr: 3e-3 init_std: 0.1 }}
media {{ most: 2 evaluate: 6 }}
programs {{ name: "pictures" does: "encode" devices: 2 parallel {{ mesh {{ name: "dp" size: 2 }} presets: "dp" }}
  encoder {{ input: "image" patch: 8 tokens: 4 items: 1 learns: "category" layers: 1 hidden: 32 heads: 2 }} }}
programs {{ name: "sounds" does: "encode" first_device: 2 devices: 1
  encoder {{ input: "audio" mel_bins: 16 frames: 4 tokens: 4 items: 2 layers: 1 hidden: 32 heads: 2 }} }}
programs {{ name: "text" does: "train" first_device: 3 devices: 2 inputs: ["pictures", "sounds"]
  parallel {{ mesh {{ name: "pp" size: 2 }} pipeline {{ axis: "pp" }} }} }}
"""

EXPERTS = "experts { count: 4 choices: 2 ffn: 32 }"


def mesh(*axes):
    return " ".join(f'mesh {{ name: "{name}" size: {size} }}' for name, size in axes)


# name: devices, ranks, model, parallel, memory, training
LAYOUTS = {
    "one": (1, 1, "", "", "none", ""),
    "dp": (2, 2, "", mesh(("dp", 2)) + ' presets: "dp"', "none", ""),
    "zero1": (4, 2, "", mesh(("dp", 4)) + ' presets: ["dp", "zero1"]', "none", ""),
    "zero3": (2, 2, "", mesh(("dp", 2)) + ' presets: ["dp", "zero3"]', "none", ""),
    "tp": (2, 2, "", mesh(("tp", 2)) + ' presets: ["tp", "sp"]', "none", ""),
    "cp": (2, 2, "", mesh(("cp", 2)) + ' presets: "cp"', "none", ""),
    "ring": (2, 2, "", mesh(("ring", 2)) + ' presets: "ring"', "none", ""),
    "ep": (2, 2, EXPERTS, mesh(("ep", 2)) + ' presets: "ep"', "none", ""),
    "dp x tp": (4, 2, "", mesh(("dp", 2), ("tp", 2)) + ' presets: ["dp", "tp"]', "none", ""),
    "pp": (2, 2, "", mesh(("pp", 2)) + ' pipeline { axis: "pp" schedule: "1f1b" }', "none", "micro_batches: 4"),
    "pp x dp": (4, 4, "", mesh(("pp", 2), ("dp", 2)) + ' presets: "dp" pipeline { axis: "pp" schedule: "1f1b" }',
                "none", "micro_batches: 2"),
    "pool": (2, 2, "", mesh(("dp", 2)) + ' presets: "dp"', "hyperoffload", ""),
}


class Job:
    """`text` has a place {run} for further words of its run."""

    def __init__(self, devices, ranks, steps, text, every, heartbeat, more=""):
        self.devices, self.ranks, self.steps = devices, ranks, steps
        self.text = text + RUN.format(every=every, heartbeat=heartbeat, run="{run} " + more)

    def with_run(self, words):
        return 'name: "faults"\n' + self.text.replace("{run}", words)


def training(layout, heartbeat):
    devices, ranks, model, parallel, memory, words = LAYOUTS[layout]
    text = TRAINING.format(devices=devices, model=model, parallel=parallel, memory=memory, training=words, steps=12)
    return Job(devices, ranks, 12, text, 4, heartbeat)


def jobs(heartbeat):
    """Every job by its name."""
    every = {layout: training(layout, heartbeat) for layout in LAYOUTS}
    every["reinforcement"] = Job(4, 4, 9, REINFORCEMENT.format(steps=9), 3, heartbeat, 'resume: "text"')
    every["media"] = Job(5, 5, 6, MEDIA.format(steps=6), 2, heartbeat)
    return every


def write_inputs(folder, hyperrun):
    """What the jobs read: a corpus, a checkpoint, tasks, pictures and sounds."""
    (folder / "corpus.txt").write_bytes((ROOT / "README.md").read_bytes())
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = (f"{letters[i * i % 26]}={1 + i // 7 % 2}\n" for i in range(4000))
    (folder / "coins.txt").write_text("".join(lines))
    (folder / "text.textproto").write_text(TEXT)
    subprocess.run([hyperrun, "text.textproto", "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    tasks = [{"prompt": f"{c}=", "answer": "1"} for c in letters]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    corners = ["north west", "north east", "south west", "south east"]
    samples = []
    for i in range(24):
        split = "train" if i < 18 else "held-back"
        (folder / f"p{i}.png").write_bytes(picture(i % 4, i))
        samples.append({"id": f"p{i}", "text": "a corner", "image": f"p{i}.png", "category": corners[i % 4],
                        "split": split})
        write_tone(folder / f"s{i}.wav", 300 + 7 * i if i % 2 else 3000 + 40 * i)
        samples.append({"id": f"s{i}", "text": "low" if i % 2 else "high", "audio": f"s{i}.wav", "category": "tone",
                        "split": split})
    (folder / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))


def picture(corner, noise):
    """A PNG of 16 x 16 with one bright corner."""
    rows = b""
    for y in range(16):
        rows += b"\0"
        for x in range(16):
            bright = (x // 8) + 2 * (y // 8) == corner
            rows += bytes([(200 if bright else 20) + (x * y * noise) % 40] * 3)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts)


def write_tone(path, hertz):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        tone = (int(16000 * math.sin(2 * math.pi * hertz * n / 16000)) for n in range(4000))
        file.writeframes(b"".join(struct.pack("<h", value) for value in tone))
