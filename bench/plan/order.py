#!/usr/bin/env python3
"""The planner's order beside the measured one: every feasible strategy of three models on eight ranks.

    bench/plan/order.py                             all of them: hours
    bench/plan/order.py --only latent --sample 4    of the models whose name has "latent" every fourth, by rank
    bench/plan/order.py --json order.jsonl          a line a strategy; those that are there are not run again
    bench/plan/order.py --first 40 --each 16        the first ones alone, more exactly: which is the best of them
    bench/plan/order.py --together 3                so many at once: a paced rank sleeps most of its time

The planner simulates all strategies of a job that fit. Each is then executed with `run { clock: "paced" }` to the
scale of its model: real ranks, threads and messages, each instruction lasting what the simulator says, stretched so
that they last --each milliseconds on average, of which starting and waking take some tenths. That makes all steps
longer by nearly the same share. A strategy's measured step is the median of --steps. Printed are Spearman's
correlation of simulated and measured steps, by how much the best as predicted is slower than the best as measured,
and the strategies that are off by more than --off percent, with the kind of instruction that is off most.

HBM is such that two to four hundred strategies of each model fit: few enough to run all of them. --hbm gives another budget.
Two plans of the same predicted step are one: the first is run. Standard library only."""
import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = "hidden: 2048 heads: 16 vocab: 32000 sequence: 2048"
#         layers, HBM, model, the divisors of what is executed
MODELS = {
    "dense": (2, "700 MiB", f"{WIDTHS} kv_heads: 4 ffn: 5632", "width: {0} sequence: {1} vocab: 100"),
    "experts": (2, "900 MiB", f"""name: "mixtral" {WIDTHS} kv_heads: 2
      experts {{ count: 8 choices: 2 ffn: 1408 capacity {{ factor: 1.25 }} }}""",
                "width: {0} sequence: {1} vocab: 100"),
    "latent": (2, "705 MiB", f"""name: "deepseek_v3" {WIDTHS} ffn: 5632
      latent {{ q_rank: 768 kv_rank: 256 nope_dim: 128 rope_dim: 64 value_dim: 128 }}""",
               "width: {0} sequence: {1} vocab: 100"),
}
# Divisors of width and sequence: the smallest model whose sizes the strategy divides is executed.
DIVISORS = ((16, 32), (8, 16), (4, 8))


def textproto(name, parallel, training, run, options):
    layers, hbm, model, _ = MODELS[name]
    return f"""name: "{name}"
supernode {{ devices: 8 profile: "{options.profile}" hbm: "{options.hbm or hbm}" pool: "0 B" }}
model {{ layers: {layers} {model} }}
parallel {{ {parallel} }}
data {{ corpus: "{options.corpus}" }}
training {{ steps: {options.steps} batch: 8 lr: 1e-4 precision: "bfloat16" {training} }}
run {{ {run} }}
"""


def planned(name, options):
    """All strategies that fit, the fastest first."""
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder) / f"{name}.textproto"
        job.write_text(textproto(name, 'mesh { name: "dp" size: 8 } presets: ["dp"]', "", "", options))
        search = json.loads(called([options.hyperrun, "plan", job, "--leaders", "100000", "--ranges", "0", "--json"]))
    plans, seen = [], set()
    for leader in search["leaders"]:
        if "step_ns" in leader and leader["step_ns"] not in seen:
            seen.add(leader["step_ns"])
            plans.append(leader)
    print(f"{name}: {search['strategies']} strategies, {search['do_not_divide']} with layouts that do not divide, "
          f"{search['do_not_fit']} that do not fit, {len(plans)} of different steps")
    return plans


def presets(mesh, words):
    names = [axis for axis in ("dp", "ep", "ring", "cp") if axis in mesh]
    if "tpy" in mesh:
        names.append("tp2d")
    elif "tp" in mesh:
        names += ["tp", "sp"]
    return names + re.findall(r"\b(?:etp|ep_tp|zero[123])\b", words)


def recompute(name, words):
    """The first layers of a device may recompute more than the others."""
    layers, text = MODELS[name][0], ""
    more = re.search(r"(\w+) in (\d+) layers? of a device", words)
    deeper = int(more.group(2)) if more else 0
    if more:
        if " pp " in f" {words}":
            sys.exit(f"{words}: layers of stages are not told apart here")
        text += f' recompute {{ policy: "{more.group(1)}" last_layer: {deeper - 1} }}'
    all_of_them = re.search(r"recompute (\w+)(?! in)\b", words)
    if all_of_them and deeper < layers and not re.search(r"recompute \w+ in", words):
        text += f' recompute {{ policy: "{all_of_them.group(1)}" first_layer: {deeper} }}'
    return text


BAD_LAYOUT = 3  # exit status


def called(command, allowed=0):
    """The output of a command; None if it ends with the allowed status."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, allowed):
        sys.exit(f"{done.stderr}{done.stdout}")
    return done.stdout if done.returncode == 0 else None


def dilation(job, plan, options):
    """The dilation with which instructions of the slowest device last --each on average."""
    explained = called([options.hyperrun, "sim", job, "--no-range", "--explain", "1000000"])
    instructions = sum(map(int, re.findall(r": (\d+) times? ", explained)))
    return round(instructions * options.each * 1e6 / plan["step_ns"], 1)


def job_of(name, plan, stretched, divisors, options):
    """The planner's strategy as a job. The run's own prediction shows that it is the same."""
    mesh, words = plan["mesh"], plan["strategy"]
    parallel = " ".join(f'mesh {{ name: "{axis}" size: {size} }}' for axis, size in mesh.items())
    parallel += f" presets: {json.dumps(presets(mesh, words))}"
    if "pp" in mesh:
        schedule = re.search(r"\b(gpipe|1f1b|interleaved|zero_bubble)\b", words).group(1)
        chunks = re.search(r"of (\d+) chunks", words)
        parallel += f' pipeline {{ axis: "pp" schedule: "{schedule}" chunks: {chunks.group(1) if chunks else 1} }}'
    training = f"micro_batches: {plan['micro_batches']}{recompute(name, words)}"
    run = f'clock: "paced" dilation: {stretched} heartbeat: "60 s" shrink {{ {MODELS[name][3].format(*divisors)} }}'
    return textproto(name, parallel, training, run, options)


def measure(name, plan, options):
    with tempfile.TemporaryDirectory() as folder:
        return measured(name, plan, options, pathlib.Path(folder))


def measured(name, plan, options, folder):
    path, out = folder / "plan.textproto", folder / "out"
    path.write_text(job_of(name, plan, 1, DIVISORS[0], options))
    stretched = dilation(path, plan, options)
    for divisors in DIVISORS:
        path.write_text(job_of(name, plan, stretched, divisors, options))
        if called([options.hyperrun, "run", path, "--run-dir", out, "--quiet"], BAD_LAYOUT) is not None:
            break
    else:
        sys.exit(f"{plan['strategy']}: no model of {name} that is small enough to be executed divides so")
    paced = json.loads((out / "report.json").read_text())["paced"]
    if paced["predicted_ns"] != plan["step_ns"]:
        sys.exit(f"{plan['strategy']}: the run predicts {paced['predicted_ns']} ns, the planner {plan['step_ns']}")
    return {"model": name, "strategy": plan["strategy"], "forecast_ns": plan["forecast_ns"], **paced}


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranked = [0.0] * len(values)
    for rank, i in enumerate(order):
        ranked[i] = rank
    return ranked


def spearman(predicted, measured):
    return statistics.correlation(ranks(predicted), ranks(measured)) if len(predicted) > 1 else 1.0


def off(row, key="measured_ns"):
    return 100 * (row[key] / row["predicted_ns"] - 1) if row["predicted_ns"] else 0.0


def show(row):
    worst = max(row["instructions"], key=lambda i: i["measured_ns"] - i["predicted_ns"])
    print(f"  {row['strategy']:78} {row['predicted_ns'] / 1e6:9.3f} ms {row['measured_ns'] / 1e6:9.3f} ms {off(row):+6.2f}%"
          f"  {worst['instruction']} {off(worst):+.1f}%", flush=True)


def judge(name, rows, options):
    predicted, measured = [r["predicted_ns"] for r in rows], [r["measured_ns"] for r in rows]
    best = measured[predicted.index(min(predicted))] / min(measured) - 1
    far = [r for r in rows if abs(off(r)) > options.off]
    print(f"{name}: {len(rows)} strategies, Spearman {spearman(predicted, measured):.4f}, the best as predicted "
          f"{100 * best:.2f}% behind the best as measured, median error {statistics.median(map(off, rows)):+.2f}%, "
          f"{len(far)} off by more than {options.off:g}%")
    print(f"{name}: the closed form's Spearman {spearman([r['forecast_ns'] for r in rows], measured):.4f}")
    for row in sorted(far, key=off, reverse=True):
        show(row)


def known(options):
    if not options.json or not options.json.exists():
        return {}
    rows = map(json.loads, options.json.read_text().splitlines())
    return {(row["model"], row["strategy"]): row for row in rows}


def noted(name, plan, options):
    row = measure(name, plan, options)
    if options.json:
        with open(options.json, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
    return row


def rows_of(name, plans, before, options):
    """Results in the predicted order; of the unknown ones --together are run at once."""
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.together) as pool:
        for plan in plans:
            row = before.get((name, plan["strategy"]))
            rows.append(row or pool.submit(noted, name, plan, options))
        try:
            for i, row in enumerate(rows):
                rows[i] = row if isinstance(row, dict) else row.result()
                show(rows[i])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--corpus", default=ROOT / "data/king-james.txt")
    parser.add_argument("--profile", default="matrix384")
    parser.add_argument("--steps", type=int, default=3, help="that are measured")
    parser.add_argument("--each", type=float, default=10, help="ms that an instruction lasts on average")
    parser.add_argument("--only", default="")
    parser.add_argument("--hbm", default="", help="of a device, in place of the model's own")
    parser.add_argument("--together", type=int, default=1, help="strategies that run at the same time")
    parser.add_argument("--sample", type=int, default=1, help="every so many, by predicted rank")
    parser.add_argument("--first", type=int, help="so many by predicted rank (default: all)")
    parser.add_argument("--off", type=float, default=3, help="percent")
    parser.add_argument("--list", action="store_true", help="the strategies, without running them")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    before = known(options)
    for name in MODELS:
        if options.only not in name:
            continue
        plans = planned(name, options)[: options.first : options.sample]
        if options.list:
            for plan in plans:
                print(f"  {plan['strategy']:78} {plan['step_ns'] / 1e6:9.3f} ms")
        elif plans:
            judge(name, rows_of(name, plans, before, options), options)


if __name__ == "__main__":
    main()
