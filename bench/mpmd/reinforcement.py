#!/usr/bin/env python3
"""A job that learns from rewards, with its programs in several places: the time of a step, the use of the
devices' time, and the time to a reward.

    bench/mpmd/reinforcement.py                    on eight ranks, paced
    bench/mpmd/reinforcement.py --native --rounds 3
    bench/mpmd/reinforcement.py --ways colocated:0 6+2:2    of the ways below some, or others
    bench/mpmd/reinforcement.py --simulated        a model of 8 billion weights on 64 dies

A way says which program has which devices, and how many steps the generating weights may be behind. Colocated, every program has all
devices and they take turns; 4+4, four generate and four learn. In order (0), a step learns from completions of its
own weights; behind, from those of older ones. Executed by mpirun, on the paced clock: each instruction lasts as long as on the
modelled machine, times --dilation. The model is small, so the machine is, too: a pass of generation mostly launches
instructions, learning computes, and --cube, the rate of a device's matrix products, balances the two.

The task: the answer to "a=", "b=", ... is 1, after any number of blanks. The model has read a text in which it is 1
or 2, after a number of blanks that is geometric with mean --blanks: lengths of completions have a long tail, cut at
--tokens.

Useful work per device time is the number of completions learned from per second of all devices. Here it is steps per second,
as all ways have the same devices and batch. The table has its gain over the first way, the share of time in which devices run
a program, and the mean share of filled slots in passes of decode. "to" is when the mean reward of three steps first
reached --reward, since the first step was learned.

Simulated: Llama-3-8B's shape on the profile matrix384, bfloat16; tensors of each program over 8 dies, the batch over the others,
the learner with ZeRO-1 and all layers recomputed. 512 completions a step on 512 slots, lengths evenly drawn from 64 to 1,024,
prompts of some 210 tokens, of which a pass takes 64. Nothing is learned there, so there is no reward. Standard library only."""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 3  # first steps left out: ways that run ahead begin with nothing to wait for
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIMULATED_WAYS = ["colocated:0", "colocated:1", "colocated:2", "32+32:0", "32+32:1", "32+32:2", "32+32:4"]
WAYS = ["colocated:0", "colocated:1", "colocated:2", "4+4:0", "4+4:1", "4+4:2", "6+2:1", "6+2:2"]


def model(options):
    return (f"model {{ layers: 3 hidden: 96 heads: 4 vocab: 257 sequence: {options.tokens + 16} tied_head: true }}\n")


def read_text(options, folder):
    """Trains a model on lines of that kind, with which all ways begin."""
    chance = random.Random(7)
    with open(folder / "text.txt", "w", encoding="utf-8") as text:
        for _ in range(20000):
            blanks = 0
            while chance.random() < options.blanks / (options.blanks + 1):
                blanks += 1
            text.write(f"{chance.choice(LETTERS)}={' ' * blanks}{chance.choice('12')}\n")
    with open(folder / "tasks.jsonl", "w", encoding="utf-8") as tasks:
        for letter in LETTERS:
            tasks.write(json.dumps({"prompt": f"{letter}=", "answer": "1"}) + "\n")
    job = folder / "text.textproto"
    job.write_text(f"""supernode {{ devices: 1 hbm: "256 MiB" }}
{model(options)}data {{ corpus: "text.txt" }} training {{ steps: 200 batch: 8 lr: 3e-3 warmup_steps: 20 }}
""")
    run([options.hyperrun, job, "--quiet", "--run-dir", folder / "text"])


def program(name, does, first, devices, more=""):
    return (f'programs {{ name: "{name}" does: "{does}" first_device: {first} devices: {devices} {more} '
            f'parallel {{ mesh {{ name: "dp" size: {devices} }} presets: "dp" }} }}\n')


def textproto(options, cube, where, staleness):
    if where == "colocated":
        generate, learn, first = options.devices, options.devices, 0
    else:
        generate, learn = map(int, where.split("+"))
        first = generate
    slots = -(-options.slots // (4 * generate)) * 4 * generate
    clock = "" if options.native else f'clock: "paced" dilation: {options.dilation} '
    return f"""name: "reinforcement"
supernode {{ devices: {options.devices} hbm: "64 MiB" cube_flops: "{cube}" vector_flops: "{cube}" }}
{model(options)}data {{ tasks: "tasks.jsonl" }}
training {{ steps: {options.steps} batch: {options.batch} lr: {options.lr} weight_decay: 0 policy {{ clip: 0.2 kl: 0.001 }} }}
reinforcement {{ samples: 8 tokens: {options.tokens} held_back: 0 staleness: {staleness} }}
{program("rollout", "generate", 0, generate, f'weights: "learner" inference {{ slots: {slots} page: 16 prompts: {slots // 4} chunk: 4 }}')}
programs {{ name: "judge" does: "reward" inputs: "rollout" }}
{program("reference", "score", first, learn, 'inputs: "rollout"')}
{program("learner", "train", first, learn, 'inputs: ["rollout", "judge", "reference"]')}
run {{ {clock}resume: "text" }}
"""


def at_full_size(way):
    where, staleness = way.split(":")
    generate, learn = (64, 64) if where == "colocated" else map(int, where.split("+"))
    first = 0 if where == "colocated" else generate

    def of(name, does, begin, devices, presets, more=""):
        return (f'programs {{ name: "{name}" does: "{does}" first_device: {begin} devices: {devices} {more} parallel {{ '
                f'mesh {{ name: "dp" size: {devices // 8} }} mesh {{ name: "tp" size: 8 }} presets: [{presets}] }} }}\n')

    return f"""name: "llama8b"
supernode {{ devices: {first + learn} profile: "matrix384" }}
model {{ layers: 32 hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336 vocab: 128256 sequence: 1280 }}
data {{ tasks: "long.jsonl" tokenizer: "text/tokenizer.json" }}
training {{ steps: 32 batch: 512 micro_batches: 8 lr: 1e-6 precision: "bfloat16" recompute {{ policy: "full" }}
  policy {{ clip: 0.2 kl: 0.001 }} }}
reinforcement {{ samples: 16 tokens: 1024 held_back: 0 staleness: {staleness} }}
{of("rollout", "generate", 0, generate, '"dp", "tp"',
    'weights: "learner" inference { slots: 512 page: 64 prompts: 64 chunk: 256 }')}
programs {{ name: "judge" does: "reward" inputs: "rollout" }}
{of("reference", "score", first, learn, '"dp", "tp"', 'inputs: "rollout"')}
{of("learner", "train", first, learn, '"dp", "tp", "zero1"', 'inputs: ["rollout", "judge", "reference"]')}
"""


def simulated(options, folder, _, way):
    with open(folder / "long.jsonl", "w", encoding="utf-8") as tasks:
        for n in range(256):
            tasks.write(json.dumps({"prompt": "1+" * 105 + f"{n}=", "answer": str(105 + n)}) + "\n")
    job = folder / "job.textproto"
    job.write_text(at_full_size(way))
    report = json.loads(run([options.hyperrun, "sim", job, "--lengths", "64:1024", "--json", "--no-range"]))
    return {"step_ms": 1e3 * report["seconds"] / report["steps"], "in_programs": report["utilisation"],
            "filled": report["filled_slots"], "tokens": report["learned_tokens"] / report["learned_completions"],
            "staleness": float(way.split(":")[1]), "to_steps": float("nan"), "to_ms": float("nan")}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr + done.stdout)
    return done.stdout


def executed(options, folder, cube, way):
    where, staleness = way.split(":")
    job = folder / "job.textproto"
    job.write_text(textproto(options, cube, where, staleness))
    out = run([options.hyperrun, job, "--quiet", "--run-dir", folder / "run"])
    directory = pathlib.Path(out.rsplit("run directory: ", 1)[1].strip())
    steps = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    report = json.loads((directory / "report.json").read_text())
    seconds = [s["time_ns"] / 1e9 / (1 if options.native else options.dilation) for s in steps]
    reached = [i for i in range(2, len(steps)) if sum(s["reward"] for s in steps[i - 2:i + 1]) >= 3 * options.reward]
    return {"step_ms": 1e3 * (seconds[-1] - seconds[SKIPPED - 1]) / (len(steps) - SKIPPED),
            "in_programs": report["utilisation"], "filled": report["filled_slots"],
            "tokens": report["learned_tokens"] / report["learned_completions"],
            "staleness": statistics.mean(s["staleness"] for s in steps[SKIPPED:]),
            "to_steps": reached[0] + 1 if reached else float("nan"),
            "to_ms": 1e3 * (seconds[reached[0]] - seconds[0]) if reached else float("nan")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--cube", nargs="+", default=["20 GFLOP/s", "100 GFLOP/s", "400 GFLOP/s"])
    parser.add_argument("--ways", nargs="+")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--slots", type=int, default=32, help="rounded up to a multiple of four times those who generate")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--blanks", type=float, default=20)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--lr", default="6e-4")
    parser.add_argument("--reward", type=float, default=0.75)
    parser.add_argument("--dilation", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--native", action="store_true", help="as fast as the host can")
    parser.add_argument("--simulated", action="store_true", help="at full size")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.ways = options.ways or (SIMULATED_WAYS if options.simulated else WAYS)
    if options.simulated:
        options.cube, options.rounds = ["64 dies"], 1
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        read_text(options, folder)
        for cube in options.cube:
            print(heading(cube), flush=True)
            measure(options, folder, cube)


def measure(options, folder, cube):
    """Runs the ways in turn, so that other load on the host affects all alike."""
    found = {way: [] for way in options.ways}
    for i in range(options.rounds):
        for way in options.ways:
            found[way].append((simulated if options.simulated else executed)(options, folder, cube, way))
            if i + 1 < options.rounds:
                continue
            row = {key: statistics.median(r[key] for r in found[way]) for key in found[way][0]}
            if way == options.ways[0]:
                first = row["step_ms"]
            print(json.dumps({"cube": cube, "way": way, **row}) if options.json else line(way, row, first), flush=True)


def heading(cube):
    return (f"{cube:14} {'step':>11} {'work/s':>7} {'in a program':>13} {'slots':>7} {'behind':>7} {'to reward':>12} "
            f"{'steps':>6} {'tokens':>7}")


def line(way, row, first):
    return (f"{way:14} {row['step_ms']:8.2f} ms {first / row['step_ms']:6.2f}x {100 * row['in_programs']:11.1f} % "
            f"{100 * row['filled']:5.1f} % {row['staleness']:7.2f} {row['to_ms']:9.1f} ms {row['to_steps']:6.0f} "
            f"{row['tokens']:7.1f}")


if __name__ == "__main__":
    main()
