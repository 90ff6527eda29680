#!/usr/bin/env python3
"""The best strategy of each space, simulated: what hyperrun searches, what Megatron-LM and DeepSpeed can express.

    bench/plan/spaces.py                                  both models, over batch and sequence, on 2,048 dies
    bench/plan/spaces.py --model dense310b --sequence 8192 --batch 2048
    bench/plan/spaces.py --published                      published layouts beside what the planner finds
    bench/plan/spaces.py --json spaces.jsonl              a line a search; those that are there are not made again

The models have the sizes that their names say: a dense one of 310 billion weights, whose shape is made up (none is
public), and Mixtral 8x22B's. The batch is in sequences. Beside the best stands how far the best of its space can be
at most (the certified gap), and how much longer the best of each other space takes.

What a restricted space has, "all" has as well: where it finds what is faster, the leaders of "all" have missed it.

Everything is simulated, on the profile matrix384, and nothing is fitted. Published for a machine of this kind, with
2,048 NPUs: 56.7 % MFU, 1.33 times as fast as the best other configuration; model shapes, batch, sequence and layouts
are not public, nor is which other configurations were tried. Standard library only."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPACES = ("all", "megatron", "deepspeed")
MODELS = {
    "dense310b": "layers: 96 hidden: 16384 heads: 128 kv_heads: 16 ffn: 49152 vocab: 128256",
    "mixtral8x22b": """name: "mixtral" layers: 56 hidden: 6144 heads: 48 kv_heads: 8 vocab: 32768
      experts { count: 8 choices: 2 ffn: 16384 capacity { factor: 1.25 } }""",
}
#             example with the published layout, or the nearest to it that a job can say
PUBLISHED = ("llama405b_2d", "deepseek_v3_512", "qwen3_30b_a3b_swap")


def textproto(model, sequence, batch, options):
    return f"""name: "{model}"
supernode {{ devices: {options.devices} profile: "{options.profile}" }}
model {{ {MODELS[model]} sequence: {sequence} }}
data {{ corpus: "none.txt" }}
training {{ steps: 1 batch: {batch} lr: 1e-4 precision: "bfloat16" }}
"""


def planned(options, job, space):
    """The answer of `hyperrun plan` and its seconds, or the text of a refusal."""
    begin = time.monotonic()
    ran = subprocess.run([options.hyperrun, "plan", job, "--space", space, "--leaders", str(options.leaders),
                          "--ranges", "0", "--json"], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if ran.returncode == 4:
        return {"refused": ran.stderr.strip().splitlines()[0], "seconds": seconds}
    if ran.returncode != 0:
        sys.exit(ran.stderr)
    return {**json.loads(ran.stdout), "seconds": seconds}


def known_rows(path):
    if not path or not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["name"], row["space"]): row for row in rows}


def searched(options, known, name, job, space):
    if (name, space) in known:
        return known[name, space]
    row = {"name": name, **planned(options, job, space), "space": space}
    if options.json:
        with options.json.open("a") as out:
            out.write(json.dumps(row) + "\n")
    return row


def print_best(row, best):
    if "leaders" not in row:
        print(f"  {row['space']:10} {row['refused']}", flush=True)
        return
    first = row["leaders"][0]
    gap = "none" if row["gap"] is None else f"{100 * row['gap']:4.1f} %"
    print(f"  {row['space']:10} {first['step_ns'] * 1e-9:8.2f} s  MFU {100 * first['mfu']:4.1f} %  "
          f"{first['step_ns'] / best:5.2f}x  gap {gap}  {first['strategy']}  "
          f"({row['strategies']:,} strategies, {row['seconds']:.0f} s)", flush=True)


def sweep(options, known, folder):
    for model in options.model:
        for sequence in options.sequence:
            for batch in options.batch:
                name = f"{model} {sequence} x {batch}"
                job = folder / "job.textproto"
                job.write_text(textproto(model, sequence, batch, options))
                print(f"{model}, sequences of {sequence:,}, batch {batch:,}")
                rows = [searched(options, known, name, job, space) for space in options.space]
                best = min((row["leaders"][0]["step_ns"] for row in rows if "leaders" in row), default=1)
                for row in rows:
                    print_best(row, best)


def published(options, known):
    for name in PUBLISHED:
        row = searched(options, known, name, ROOT / "examples" / f"{name}.textproto", "all")
        own, first = row["own"], row["leaders"][0]
        print(f"{name}: as published {own['step_ns'] * 1e-9:.2f} s, MFU {100 * own['mfu']:.1f} %, "
              f"{'in' if own['in_space'] else 'not in'} the space; found {first['step_ns'] * 1e-9:.2f} s, "
              f"MFU {100 * first['mfu']:.1f} %: {first['strategy']} ({own['step_ns'] / first['step_ns']:.2f}x)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build" / "bin" / "hyperrun", type=pathlib.Path)
    parser.add_argument("--profile", default="matrix384")
    parser.add_argument("--devices", type=int, default=2048)
    parser.add_argument("--model", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--sequence", nargs="+", type=int, default=[4096, 8192, 32768])
    parser.add_argument("--batch", nargs="+", type=int, default=[1024, 2048])
    parser.add_argument("--space", nargs="+", choices=SPACES, default=list(SPACES))
    parser.add_argument("--leaders", type=int, default=6)
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    known = known_rows(options.json)
    if options.published:
        return published(options, known)
    with tempfile.TemporaryDirectory() as folder:
        return sweep(options, known, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
