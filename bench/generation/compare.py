#!/usr/bin/env python3
"""Speed of generation by hyperrun beside PyTorch's, and as a share of the core's read rate.

    bench/generation/compare.py --rounds 5            both sizes: decode, and prefill of prompts of 256 and 512 tokens
    bench/generation/compare.py --sizes 256 --no-prefill --json result.jsonl

Both sides run one process of one thread, float32, one sequence at a time, always the likeliest token: decode from
prompts of 32 tokens that grow by 128; prefill of a whole prompt in one pass, up to its first token. A job of each
size is trained for one step, to have weights to generate with; their values do not matter.

One round runs a probe of the core's read rate over as many bytes as the model's weights of matrix products (one
size fits a large cache, one does not), hyperrun and PyTorch, every other round the other way round. Ratios are taken
within a round; the median over the rounds counts. Within a run the median token counts on both sides; hyperrun's
includes the round trip to the controller.

The share is the weights' bytes times tokens/s over the rate of the probe: a token reads each weight once.
A share above 1 only means that the probe ran in a worse moment.

PyTorch is bench/train/torch_peer.py, with the set-up of bench/train/compare.py, or, --torch PATH, another script that
takes `--mode decode` or `prefill` with --dim, --layers, --heads, --vocab, --threads, --seq, --prompt, --gen, --batch
and prints a line of JSON with `tok_s`.

Standard library only. JSON lines go to --json, tables to the standard output."""
import argparse
import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch
SIZES = {256: dict(layers=4, ffn=704), 512: dict(layers=8, ffn=1408)}
HEADS, VOCAB = 8, 4096
PROMPT, GROW = 32, 128
PREFILLS = (256, 512)
PROMPTS = 5  # prompts of a run

spec = importlib.util.spec_from_file_location("train_compare", ROOT / "bench" / "train" / "compare.py")
train = importlib.util.module_from_spec(spec)
spec.loader.exec_module(train)

JOB = """name: "generation_dim{dim}"
supernode {{ devices: 1 hbm: "1 GiB" }}
model {{ layers: {layers} hidden: {dim} ffn: {ffn} heads: {heads} vocab: {vocab} sequence: {context} }}
data {{ corpus: "{corpus}" {tokenizer} }}
training {{ steps: 1 batch: 1 lr: 1e-3 }}
inference {{ chunk: {prompt} }}
"""


def weight_bytes(size):
    """Number of weights of the matrices that a token is multiplied with."""
    m = SIZES[size]
    return 4 * (m["layers"] * (4 * size * size + 3 * size * m["ffn"]) + VOCAB * size)


def command_output(a, command, torch=False):
    if a.realtime:
        command = ["chrt", "-r", "1", *command]
    ran = subprocess.run([str(c) for c in command], env=train.environment(a, 1, torch), capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout, ran.stderr


class Models:
    """Jobs and weights of each size, in a directory that is removed when the comparison ends."""

    def __init__(self, a, directory):
        self.a, self.directory = a, pathlib.Path(directory)
        for size in a.sizes:
            # All sizes have the vocabulary of the first, whose run makes the tokenizer.
            first = self.run_of(a.sizes[0]) / "tokenizer.json"
            job = self.job(size, PROMPT, GROW, "" if size == a.sizes[0] else f'tokenizer: "{first}"')
            command_output(a, [a.hyperrun, job, "--run-dir", self.run_of(size), "--quiet"])

    def run_of(self, size):
        return self.directory / f"run{size}"

    def job(self, size, prompt, grow, tokenizer=""):
        path = self.directory / f"dim{size}_prompt{prompt}.textproto"
        path.write_text(JOB.format(dim=size, heads=HEADS, vocab=VOCAB, context=prompt + grow, prompt=prompt,
                                   corpus=ROOT / "data" / "king-james.txt", tokenizer=tokenizer, **SIZES[size]))
        return path

    def passes(self, size, prompt, grow):
        """Seconds of the median pass: {"prefill": .., "decode": ..}. A prompt longer than `prompt` would be refused."""
        command = [self.a.hyperrun, "generate", self.job(size, prompt, grow), "--checkpoint", self.run_of(size),
                   "--tokens", grow, "--json"]
        for _ in range(PROMPTS):
            command += ["--prompt", " the" * prompt]
        out, told = command_output(self.a, command)
        grown = [len(json.loads(line)["tokens"]) for line in out.splitlines()]
        if grown != [grow] * PROMPTS:
            raise SystemExit(f"sequences of {grown} tokens in place of {grow}: one has ended before its time")
        return {name: 1e-3 * float(ms)
                for name, ms in re.findall(r"^(\w+): \d+ passes, the median of ([\d.]+) ms", told, re.M)}


def own_peer(a, size, prompt, grow):
    m = SIZES[size]
    out, _ = command_output(a, [
        PYTHON, ROOT / "bench" / "train" / "torch_peer.py", "--generate", "--dim", size, "--layers", m["layers"],
        "--heads", HEADS, "--vocab", VOCAB, "--ffn", m["ffn"], "--batch", 1, "--seq", prompt + grow, "--prompt", prompt,
        "--grow", grow, "--steps", PROMPTS, "--threads", 1], torch=True)
    result = json.loads(out.splitlines()[-1])
    return result["prompt_seconds"], result["token_seconds"]


def torch_rate(a, size, prompt, grow):
    """Tokens/s: of the prompt for prefill, of generated tokens for decode."""
    if a.torch:
        command = [PYTHON, a.torch, "--mode", "prefill" if grow == 1 else "decode", "--dim", size, "--layers",
                   SIZES[size]["layers"], "--heads", HEADS, "--vocab", VOCAB, "--threads", 1, "--seq", prompt,
                   "--prompt", prompt, "--gen", grow, "--batch", 1]
        return json.loads(command_output(a, command, torch=True)[0].splitlines()[-1])["tok_s"]
    prompts, tokens = own_peer(a, size, prompt, grow)
    return prompt / statistics.median(prompts[1:]) if grow == 1 else 1 / statistics.median(tokens)


def hyperrun_rate(models, size, prompt, grow):
    passes = models.passes(size, prompt, grow)
    return prompt / passes["prefill"] if grow == 1 else 1 / passes["decode"]


def run_round(a, models, number, size, prompt, grow, with_torch):
    order = [("hyperrun", lambda: hyperrun_rate(models, size, prompt, grow))]
    if with_torch:
        order.append(("torch", lambda: torch_rate(a, size, prompt, grow)))
    bytes_read = weight_bytes(size)
    probed = json.loads(command_output(a, [a.read_probe, bytes_read])[0])[str(bytes_read)]
    rates = {name: run() for name, run in (order if number % 2 == 0 else reversed(order))}
    result = dict(round=number, size=size, kind="prefill" if grow == 1 else "decode", prompt=prompt, read_gbs=probed, **rates)
    if with_torch:
        result["ratio"] = rates["hyperrun"] / rates["torch"]
    if grow > 1:
        result["share"] = bytes_read * rates["hyperrun"] * 1e-9 / probed
    return result


def line_of(r):
    return (f"dim {r['size']} {r['kind']:<7} prompt {r['prompt']:>3}  hyperrun {r['hyperrun']:8.1f} tokens/s  "
            f"torch {train.text(r.get('torch'), '8.1f')}  {train.text(r.get('ratio'), '5.2f')}x"
            + (f"  {r['share']:4.0%} of {r['read_gbs']:.1f} GB/s" if "share" in r else ""))


def print_summary(rounds):
    print("\nmedians over the rounds")
    for case in dict.fromkeys((r["size"], r["kind"], r["prompt"]) for r in rounds):
        mine = [r for r in rounds if (r["size"], r["kind"], r["prompt"]) == case]
        middle = {key: statistics.median(r[key] for r in mine)
                  for key in ("hyperrun", "torch", "ratio", "share", "read_gbs") if key in mine[0]}
        print(line_of(dict(mine[0], **middle)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build directory (build)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sizes", type=lambda s: [int(v) for v in s.split(",")], default=sorted(SIZES))
    parser.add_argument("--no-prefill", action="store_true", help="decode only")
    parser.add_argument("--torch", help="another script in place of bench/train/torch_peer.py")
    parser.add_argument("--coretype", help='OPENBLAS_CORETYPE for all; "" removes it (default: as it is)')
    parser.add_argument("--json", type=pathlib.Path, help="append a line for each round here")
    parser.add_argument("--nice", type=int, default=0, help="priority of everything measured (-15 where allowed)")
    parser.add_argument("--realtime", action="store_true",
                        help="what is measured runs before anything else (chrt -r 1), for a machine that is busy")
    a = parser.parse_args()
    a.hyperrun, a.read_probe = a.build / "bin" / "hyperrun", a.build / "bin" / "read_probe"
    for path in (a.hyperrun, a.read_probe):
        if not path.exists():
            raise SystemExit(f"{path} is missing: ninja -C {a.build} hyperrun read_probe")
    if a.nice:
        train.take_priority(a.nice)
    version = train.torch_version()
    print(f"torch {version or 'is not there (apt-get install python3-torch): left out'}, {os.cpu_count()} cores")
    cases = [(PROMPT, GROW)] + ([] if a.no_prefill else [(prompt, 1) for prompt in PREFILLS])
    rounds = []
    with tempfile.TemporaryDirectory() as directory:
        models = Models(a, directory)
        for number in range(a.rounds):
            for size in a.sizes:
                for prompt, grow in cases:
                    rounds.append(run_round(a, models, number, size, prompt, grow, version is not None))
                    print(f"round {number} load {os.getloadavg()[0]:.1f} {line_of(rounds[-1])}", flush=True)
                    if a.json:
                        with open(a.json, "a") as lines:
                            lines.write(json.dumps(dict(rounds[-1], torch_version=version)) + "\n")
    print_summary(rounds)


if __name__ == "__main__":
    sys.exit(main())
