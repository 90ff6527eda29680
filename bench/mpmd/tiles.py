#!/usr/bin/env python3
"""Layers of a DeepSeek-V3's experts, without tiles and in tiles: how much of the exchanges of rows is masked, which is
to say under way while the device computes, and how long a step takes.

    bench/mpmd/tiles.py                      simulated at full size, and executed to scale on eight ranks
    bench/mpmd/tiles.py --tiles 1 4 --no-run simulated alone

Simulated are 64 dies of the profile matrix384 with four of 256 experts each; executed are 8 ranks by mpirun, with eight
of 64 experts each, on the paced clock (`run { clock: "paced" shrink { ... } }`): real messages and threads, each
instruction as long as in the large model. Of the executed job the simulation stands beside it.

Standard library only; a table on standard output, JSON lines with --json."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHRINK = 'clock: "paced" shrink { width: 32 sequence: 32 vocab: 32 }'


def textproto(options, devices, experts, tiles, run):
    return f"""name: "experts_{devices}_tiles_{tiles}"
supernode {{ devices: {devices} profile: "{options.profile}" }}
model {{
  name: "deepseek_v3"
  layers: {options.layers} hidden: 7168 heads: 128 ffn: 18432 vocab: 16384 sequence: 4096
  latent {{ q_rank: 1536 kv_rank: 512 nope_dim: 128 rope_dim: 64 value_dim: 128 }}
  experts {{ count: {experts} choices: 8 ffn: 2048 shared: 1 dense_layers: 1 scoring: "sigmoid" scale: 2.5
    bias_rate: 1e-3 capacity {{ factor: 1.25 }} }}
}}
parallel {{ mesh {{ name: "ep" size: {devices} }} presets: ["ep"] tiles: {tiles} }}
data {{ corpus: "{options.corpus}" }}
training {{ steps: {options.steps + 1} batch: {devices} lr: 1e-4 precision: "bfloat16" }}
run {{ {run} }}
"""


def report(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}")
    return done.stdout


def exchanges(said):
    """Of a step's exchanges of rows: time under way on a device, and the share of it that is masked."""
    rows = [c for d in said["devices"] for c in d["collectives"] if c["collective"] == "all-to-all-v"]
    time, exposed = (sum(c[key] for c in rows) for key in ("time_ns", "exposed_ns"))
    return time / len(said["devices"]) / len(said["steps"]), 1 - exposed / time


def simulated(options, job):
    said = json.loads(report([options.hyperrun, "sim", job, "--json"]))
    return said["simulated"]["step_ns"], *exchanges(said)


def executed(options, job, folder):
    where = folder / (job.stem + "-run")
    report([options.hyperrun, "run", job, "--run-dir", where, "--quiet"])
    said = json.loads((where / "report.json").read_text())
    paced = said["paced"]
    kind = next(i for i in paced["instructions"] if i["instruction"] == "all-to-all-v")
    return paced["measured_ns"], kind["measured_ns"] / paced["steps"] / len(said["devices"]), exchanges(said)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    parser.add_argument("--profile", default="matrix384")
    parser.add_argument("--layers", type=int, default=4, help="the first has no experts")
    parser.add_argument("--tiles", type=int, nargs="+", default=[1, 2, 4, 8, 16, 0], help="0: the compiler decides")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--no-run", action="store_true", help="do not execute")
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"{'':24} {'tiles':>5} {'step':>12} {'exchanges':>12} {'masked':>7}")
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        for what, devices, experts, run in (("64 dies, simulated", 64, 256, ""), ("8 dies, simulated", 8, 64, ""),
                                            ("8 ranks, paced", 8, 64, SHRINK)):
            if run and options.no_run:
                continue
            for tiles in options.tiles:
                job = folder / f"{what.replace(' ', '_').replace(',', '')}_{tiles}.textproto"
                job.write_text(textproto(options, devices, experts, tiles, run))
                step, time, masked = executed(options, job, folder) if run else simulated(options, job)
                print(f"{what:24} {tiles:5} {step / 1e6:9.3f} ms {time / 1e6:9.3f} ms {100 * masked:6.1f}%", flush=True)
                if options.json:
                    line = {"what": what, "tiles": tiles, "step_ns": step, "exchanges_ns": time, "masked": masked}
                    with open(options.json, "a", encoding="utf-8") as out:
                        out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
