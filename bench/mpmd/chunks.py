#!/usr/bin/env python3
"""Layers of a Llama 3 8B, tensor parallel in one and in two dimensions and along the sequence, with collectives whole and
in tiles beside the products that feed or follow them. The table has the masked share of the collectives of these axes (under
way while the device computes) and the time of a step.

    bench/mpmd/chunks.py                      simulated at full size, and executed to scale on eight ranks
    bench/mpmd/chunks.py --tiles 1 0 --no-run simulated alone

The simulation has dies of the profile matrix384. The execution has 8 ranks by mpirun on the paced clock (`run { clock: "paced"
shrink { ... } }`): real messages and threads, each instruction as long as in the large model.

Standard library only; a table on standard output, JSON lines with --json."""
import pathlib
import tempfile

import masked

KINDS = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all"}
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


def main():
    parser = masked.parser(__doc__, tiles=[1, 2, 4, 8, 0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=8192)
    parser.add_argument("--layouts", nargs="+", default=list(LAYOUTS), choices=list(LAYOUTS))
    options = parser.parse_args()
    table = masked.Table(options, 30, "collectives")
    with tempfile.TemporaryDirectory() as folder:
        for layout in options.layouts:
            parallel, axes = LAYOUTS[layout]
            devices = 64 if layout.startswith("dp") else 8
            for what, run in (("simulated", ""), ("paced", masked.SHRINK)):
                if run and (options.no_run or devices > 8):
                    continue
                for tiles in options.tiles:
                    name = f"{layout}_{what}_{tiles}".replace(" ", "_").replace(",", "")
                    job = pathlib.Path(folder) / f"{name}.textproto"
                    job.write_text(textproto(options, name, devices, parallel, tiles, run))
                    table.add(f"{layout}, {what}", tiles, measured(options, job, axes, run), layout=layout, what=what)


def measured(options, job, axes, run):
    def counts(collective):
        return set(collective["axis"].split("+")) <= axes
    return masked.executed(options, job, counts, KINDS) if run else masked.simulated(options, job, counts)


if __name__ == "__main__":
    main()
