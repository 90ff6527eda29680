#!/usr/bin/env python3
"""Layers of a DeepSeek-V3's experts, without tiles and in tiles. The table has the masked share of the
exchanges of rows (under way while the device computes) and the time of a step.

    bench/mpmd/tiles.py                      simulated at full size, and executed to scale on eight ranks
    bench/mpmd/tiles.py --tiles 1 4 --no-run simulated alone
    bench/mpmd/tiles.py --micro-batches 4 --pairs --tiles 1 4
                                             a backward pass beside each forward pass but the first, in each row

The simulation has 64 dies of the profile matrix384 with four of 256 experts each. The execution has 8 ranks by mpirun,
with eight of 64 experts each, on the paced clock (`run { clock: "paced" shrink { ... } }`): real messages and threads, each
instruction as long as in the large model. The executed job's simulation is printed beside it.

Standard library only; a table on standard output, JSON lines with --json."""
import pathlib
import tempfile

import masked


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
parallel {{ mesh {{ name: "ep" size: {devices} }} presets: ["ep"] tiles: {tiles}
  paired_passes: {str(options.pairs).lower()} }}
data {{ corpus: "{options.corpus}" }}
training {{ steps: {options.steps + 1} batch: {devices * options.micro_batches}
  micro_batches: {options.micro_batches} lr: 1e-4 precision: "bfloat16" }}
run {{ {run} }}
"""


def main():
    parser = masked.parser(__doc__, tiles=[1, 2, 4, 8, 16, 0])
    parser.add_argument("--layers", type=int, default=4, help="the first has no experts")
    parser.add_argument("--micro-batches", type=int, default=1, help="of a sequence a die each")
    parser.add_argument("--pairs", action="store_true", help="passes beside each other (docs/mpmd.md)")
    options = parser.parse_args()
    table = masked.Table(options, 24, "exchanges")
    with tempfile.TemporaryDirectory() as folder:
        for what, devices, experts, run in (("64 dies, simulated", 64, 256, ""), ("8 dies, simulated", 8, 64, ""),
                                            ("8 ranks, paced", 8, 64, masked.SHRINK)):
            if run and options.no_run:
                continue
            for tiles in options.tiles:
                job = pathlib.Path(folder) / f"{what.replace(' ', '_').replace(',', '')}_{tiles}.textproto"
                job.write_text(textproto(options, devices, experts, tiles, run))
                table.add(what, tiles, measured(options, job, run), what=what)


def measured(options, job, run):
    kind = "all-to-all-v"

    def counts(collective):
        return collective["collective"] == kind
    return masked.executed(options, job, counts, {kind}) if run else masked.simulated(options, job, counts)


if __name__ == "__main__":
    main()
