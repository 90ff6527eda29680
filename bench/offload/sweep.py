#!/usr/bin/env python3
"""The gain of planned offloading at full size, simulated on eight dies of the matrix384 profile. For each sequence and
number of tokens a device the table has the best layout that fits into HBM without offloading, and beside it the best
under each policy of `memory`, with the same tokens a step.

    bench/offload/sweep.py --model llama8b --sequence 8192     a part of the grid, which takes hours

Without offloading every layout competes, with every power of two of micro-batches and the least recomputation with
which it fits. With offloading those compete that do not fit without it: `plain` is the layout whose weights and
optimizer state are whole on each device (for deepseek: except the experts), `any` is all layouts, `activations` is
hyperoffload of activations and gradients alone. The gain is the saved share of the baseline's time; `bound` is the gain
if transfers took no time at all, for plain and for any layout.

A job's step with endless HBM is a lower bound of its step with transfers, and so is the time to transfer once the bytes
beyond HBM. Jobs are tried in the order of the sum, and only while their bound is better than the best; --tries limits
their number. The pool is endless; the table has a device's use of it.

Simulations are kept in a file (--cache) by job, profile and binary, so that a stopped sweep continues. A job that is
refused for another reason than its memory ends the sweep with the job's error."""
import argparse
import hashlib
import json
import pathlib
import re
import sys
import time

import simulated
from jobs import HBM, DEVICES, MODELS, RECOMPUTE, SEQUENCES, axes_of, job_text, micro_batch_counts, profile_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
POOL_RATE = 25e9  # the profile's, bytes/s; for the order and the bound of the jobs tried
COLUMNS = ("plain hyperoffload", "plain reactive", "plain weights", "any hyperoffload", "any activations")
# A layout that is slower than the best by this factor with endless HBM is not cut into more micro-batches, except in a
# pipeline, where they shorten the bubble.
MARGIN = {False: 1.1, True: 1.5}


class Simulator:
    def __init__(self, options):
        self.hyperrun, self.patience = options.hyperrun, options.patience
        self.binary = str(pathlib.Path(options.hyperrun).stat().st_mtime_ns)
        self.path = pathlib.Path(options.cache)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.known = {entry["key"]: entry for entry in map(json.loads, lines)}

    def __call__(self, point, layout, micro_batches, recompute, policy):
        text = job_text(point, layout, micro_batches, recompute, policy)
        key = hashlib.sha256((self.binary + profile_text() + text).encode()).hexdigest()
        if key not in self.known:
            entry = {"key": key, "layout": layout, "micro_batches": micro_batches, "recompute": recompute,
                     "policy": policy, **point, **self.run(text)}
            self.known[key] = entry
            with open(self.path, "a", encoding="utf-8") as out:
                out.write(json.dumps(entry) + "\n")
            print(f"{entry['model']} {entry['sequence']} x {entry['tokens']} {policy}: {described(entry)} "
                  f"{entry.get('hbm', 0) / 2**30:.1f} GiB, in {entry['wall']} s", file=sys.stderr, flush=True)
        return self.known[key]

    def run(self, text):
        begin = time.monotonic()
        report = simulated.simulate(self.hyperrun, text, patience=self.patience)
        result = {"refused": report} if isinstance(report, str) else figures(report)
        return {"wall": round(time.monotonic() - begin, 2), **result}


def figures(report):
    transfer = max(part["transfer_ns"] for part in report["simulated"]["parts"]) / report["time_ns"]
    return {"seconds": report["time_ns"] / 1e9, **simulated.peaks(report), "mfu": report["simulated"]["mfu"],
            "transfer": transfer}


def fits(entry):
    return entry["hbm"] <= HBM


def with_endless_hbm(simulate, point, layout, good_enough):
    """Every micro-batching of a layout, with more and more recomputation until it fits; none that is slower than
    `good_enough` with endless HBM. More micro-batches than needed to fit only help a pipeline."""
    piped = "pp" in axes_of(layout)
    for count in micro_batch_counts(layout, point["batch"]):
        found = []
        for recompute in RECOMPUTE:
            found.append(simulate(point, layout, count, recompute, "none"))
            if "refused" in found[-1] or fits(found[-1]) or found[-1]["seconds"] >= good_enough():
                break
        found = [entry for entry in found if "refused" not in entry]
        if len(found) == len(RECOMPUTE):
            found += in_part(simulate, point, found)
        yield from found
        if not found or found[0]["seconds"] > MARGIN[piped] * good_enough() or (fits(found[0]) and not piped):
            break


def in_part(simulate, point, found):
    """Full recomputation of as few layers as needed. One more layer saves about a layer's bytes."""
    (_, most, least), layers = found, MODELS[point["model"]][1]
    if not fits(least):
        return []
    again = -(-layers * (most["hbm"] - HBM) // (most["hbm"] - least["hbm"]))
    more = (simulate(point, least["layout"], least["micro_batches"], f"full of {n}", "none")
            for n in range(max(1, again - 1), min(again + 2, layers)))
    entry = next((entry for entry in more if "refused" not in entry and fits(entry)), None)
    return [entry] if entry else []


def best_moved(simulate, point, entries, policy, tries):
    def excess(entry):
        return max(0, entry["hbm"] - HBM) / POOL_RATE

    best = None
    for entry in sorted((e for e in entries if not fits(e)), key=lambda e: e["seconds"] + excess(e)):
        if tries == 0 or (best and max(entry["seconds"], excess(entry)) >= best["seconds"]):
            continue
        moved = simulate(point, entry["layout"], entry["micro_batches"], entry["recompute"], policy)
        tries -= 1
        best = min((e for e in (best, moved) if e and "seconds" in e), key=lambda e: e["seconds"], default=None)
    return best


def study(simulate, point, options):
    _, _, layouts, plain_layout, _, _ = MODELS[point["model"]]
    race, best = [], None
    for layout in (word for word in map(str.strip, layouts.split(";")) if re.search(options.only, word)):
        for entry in with_endless_hbm(simulate, point, layout, lambda: best["seconds"] if best else float("inf")):
            race.append(entry)
            if fits(entry) and (not best or entry["seconds"] < best["seconds"]):
                best = entry
    plain = list(with_endless_hbm(simulate, point, plain_layout, lambda: float("inf")))
    row = {**point, "baseline": best, "bound plain": min(plain, key=lambda e: e["seconds"], default=None),
           "bound any": min(race + plain, key=lambda e: e["seconds"], default=None)}
    planned = row["plain hyperoffload"] = best_moved(simulate, point, plain, "hyperoffload", options.tries)
    same = [e for e in plain if planned and all(e[f] == planned[f] for f in ("micro_batches", "recompute"))]
    for policy in ("reactive", "weights"):
        row[f"plain {policy}"] = best_moved(simulate, point, same, policy, 1)
    worth = [e for e in race + plain if not best or e["seconds"] < best["seconds"]]
    for policy in ("hyperoffload", "activations"):
        row[f"any {policy}"] = best_moved(simulate, point, worth, policy, options.tries)
    return row


def gain(row, column):
    if not row["baseline"] or not row[column]:
        return float("nan")
    return 1 - row[column]["seconds"] / row["baseline"]["seconds"]


def described(entry):
    if not entry or "refused" in entry:
        return f"{entry['refused'] if entry else 'none':>24}"
    return f"{entry['seconds']:9.3f} s  {entry['layout']} {entry['recompute']} m{entry['micro_batches']}".ljust(52)


def print_row(row):
    print(f"{row['sequence']:>8} x {row['tokens']:>6}  {'baseline':18} {described(row['baseline'])}  bound "
          f"{100 * gain(row, 'bound plain'):+.1f}% plain, {100 * gain(row, 'bound any'):+.1f}% any")
    for column in COLUMNS:
        entry = row[column]
        more = f"  gain {100 * gain(row, column):+7.1f}%  exposed {100 * entry['transfer']:5.1f}%  " \
               f"pool {entry['pool'] / 2**30:6.1f} GiB" if entry else ""
        print(f"{'':19}{column:18} {described(entry)}{more}", flush=True)


def points(options):
    for model in options.model or MODELS:
        for tokens in options.tokens or MODELS[model][4]:
            for sequence in options.sequence or SEQUENCES:
                if tokens * DEVICES >= sequence:
                    yield {"model": model, "sequence": sequence, "tokens": tokens,
                           "batch": tokens * DEVICES // sequence}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hyperrun", default=ROOT / "build/bin/hyperrun")
    parser.add_argument("--model", action="append", choices=MODELS)
    for name in ("--sequence", "--tokens"):
        parser.add_argument(name, type=int, action="append")
    parser.add_argument("--only", default="", help="layouts whose name this matches")
    for name, default in (("--tries", 4), ("--patience", 240)):
        parser.add_argument(name, type=int, default=default)
    for name, default in (("--cache", "sweep_cache.jsonl"), ("--json", None)):
        parser.add_argument(name, default=default)
    options = parser.parse_args()
    simulate, rows = Simulator(options), []
    for point in points(options):
        rows.append(study(simulate, point, options))
        print_row(rows[-1])
        if options.json:
            with open(options.json, "a", encoding="utf-8") as out:
                out.write(json.dumps(rows[-1]) + "\n")
    for model in sorted({row["model"] for row in rows}):
        for column in ("plain hyperoffload", "any hyperoffload", "any activations"):
            there = [row for row in rows if row["model"] == model and gain(row, column) >= MODELS[model][5]]
            where = ", ".join(f"{row['sequence']} x {row['tokens']}" for row in there) or "nowhere"
            print(f"{model}: {column} gains {100 * MODELS[model][5]:.0f} % or more at: {where}")


if __name__ == "__main__":
    main()
