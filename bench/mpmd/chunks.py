#!/usr/bin/env python3
"""Layers of a Llama 3 8B, tensor parallel in one and in two dimensions and along the sequence, with collectives whole and
in tiles beside the products that feed or follow them: how much of the collectives of these axes is masked, which is to say
under way while the device computes, and how long a step takes.

    bench/mpmd/chunks.py                      simulated at full size, and executed to scale on eight ranks
    bench/mpmd/chunks.py --tiles 1 0 --no-run simulated alone

Simulated are dies of the profile matrix384; executed are 8 ranks by mpirun on the paced clock (`run { clock: "paced"
shrink { ... } }`): real messages and threads, each instruction as long as in the large model.

Standard library only; a table on standard output, JSON lines with --json."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHRINK = 'clock: "paced" shrink { width: 32 sequence: 32 vocab: 32 }'
LAYOUTS = {
    "tp 8": ('mesh { name: "tp" size: 8 } presets: ["tp"]', {"tp"}),
    "tp 8, sp": ('mesh { name: "tp" size: 8 } presets: ["tp", "sp"]', {"tp"}),
    "tp2d 4 x 2": ('mesh { name: "tpx" size: 4 } mesh { name: "tpy" size: 2 } presets: ["tp2d"]', {"tpx", "tpy"}),
    "cp 8": ('mesh { name: "cp" size: 8 } presets: ["cp"]', {"cp"}),
    "dp 8, tp 8, sp": ('mesh { name: "dp" size: 8 } mesh { name: "tp" size: 8 } presets: ["dp", "tp", "sp", "zero1"]',
                       {"tp"}),
    "dp 8, tp2d 4 x 2": ('mesh { name: "dp" size: 8 } mesh { name: "tpx" size: 4 } mesh { name: "tpy" size: 2 } '
                         'presets: ["dp", "tp2d", "zero1"]', {"tpx", "tpy"}),
}


def textproto(options, name, devices, parallel, tiles, run):
    batch = 8 if devices > 8 else 1
    return f"""name: "{name}"
supernode {{ devices: {devices} profile: "{options.profile}" }}
model {{
  layers: {options.layers} hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336
  vocab: 128256 sequence: {options.sequence} rope_theta: 500000
}}
parallel {{ {parallel} tiles: {tiles} }}
data {{ corpus: "{options.corpus}" }}
training {{ steps: {options.steps + 1} batch: {batch} lr: 1e-4 precision: "bfloat16" }}
run {{ {run} }}
"""


def report(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}")
    return done.stdout


def collectives(said, axes):
    """Of a step's collectives along these axes: time under way on a device, and the share of it that is masked."""
    rows = [c for d in said["devices"] for c in d["collectives"] if set(c["axis"].split("+")) <= axes]
    time, exposed = (sum(c[key] for c in rows) for key in ("time_ns", "exposed_ns"))
    return time / len(said["devices"]) / len(said["steps"]), 1 - exposed / time


def simulated(options, job, axes):
    said = json.loads(report([options.hyperrun, "sim", job, "--json"]))
    return said["simulated"]["step_ns"], *collectives(said, axes)


def executed(options, job, folder, axes):
    where = folder / (job.stem + "-run")
    report([options.hyperrun, "run", job, "--run-dir", where, "--quiet"])
    said = json.loads((where / "report.json").read_text())
    paced, kinds = said["paced"], {"all-reduce", "reduce-scatter", "all-gather", "all-to-all"}
    time = sum(i["measured_ns"] for i in paced["instructions"] if i["instruction"] in kinds)
    return paced["measured_ns"], time / paced["steps"] / len(said["devices"]), collectives(said, axes)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    parser.add_argument("--profile", default="matrix384")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=8192)
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=list(LAYOUTS))
    parser.add_argument("--tiles", type=int, nargs="+", default=[1, 2, 4, 8, 0], help="0: the compiler decides")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--no-run", action="store_true", help="do not execute")
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"{'':30} {'tiles':>5} {'step':>12} {'collectives':>12} {'masked':>7}")
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        for layout in options.layouts:
            parallel, axes = LAYOUTS[layout]
            devices = 64 if layout.startswith("dp") else 8
            for what, run in (("simulated", ""), ("paced", SHRINK)):
                if run and (options.no_run or devices > 8):
                    continue
                for tiles in options.tiles:
                    name = f"{layout}_{what}_{tiles}".replace(" ", "_").replace(",", "")
                    job = folder / f"{name}.textproto"
                    job.write_text(textproto(options, name, devices, parallel, tiles, run))
                    step, time, masked = (executed(options, job, folder, axes) if run else
                                          simulated(options, job, axes))
                    print(f"{layout + ', ' + what:30} {tiles:5} {step / 1e6:9.3f} ms {time / 1e6:9.3f} ms "
                          f"{100 * masked:6.1f}%", flush=True)
                    if options.json:
                        line = {"layout": layout, "what": what, "tiles": tiles, "step_ns": step,
                                "collectives_ns": time, "masked": masked}
                        with open(options.json, "a", encoding="utf-8") as out:
                            out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
