#!/usr/bin/env python3
"""Training throughput of hyperrun beside PyTorch's, and as a share of the machine's own sgemm rate.

    bench/train/compare.py --rounds 4                    both sizes, all set-ups, Debian's python3-torch as the peer
    bench/train/compare.py --sizes 256 --coretype SkylakeX --json result.jsonl

One round runs, for each size, every set-up once: an sgemm probe (all ranks' cores at once, so that the state of the
machine stands beside each round), hyperrun, and the peers; every other round in the opposite order. Ratios are
taken within a round, and the median over the rounds is what counts: a machine that is slow for a while is slow
for both.

What is compared, in tokens/s of the median step (the first three steps of each run are left out):
  2 ranks   hyperrun, two ranks of one thread (examples/bench_dim*.textproto), against the best of PyTorch with two
            threads and PyTorch's DDP over gloo, two ranks of one thread each
  1 rank    hyperrun, one rank of one thread (bench/train/dim*_one_rank.textproto), against PyTorch with one thread
PyTorch gets the set-up that suits it best: OpenBLAS with OpenMP threads, AVX-512 in ATen, a malloc that keeps its
pages. Both get the same OPENBLAS_CORETYPE: that of the environment, or --coretype ("" removes it).

Model flops of a token: 6 N + 12 L T d (N: weights of matrix products), where attention counts in full; the half
that a causal mask leaves is also given. The share is model flops per second and rank, divided by the
machine's 1024^3 sgemm rate per process: the better of OpenBLAS (under its OPENBLAS_CORETYPE) and of hyperrun's own
product, which takes over where OpenBLAS' vectors are narrower than the processor's.

Start-up is the time from the start of the last rank's process (the kernel's own record of it) to the begin of the
first step (end of step 1 in metrics.jsonl, minus its duration): MPI_Init, the controller's handshake, compiled
programs received, HBM mapped, first weights drawn.

Standard library only. JSON lines go to --json, tables to the standard output."""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "bench" / "train"
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch
OPENMP_BLAS = pathlib.Path("/usr/lib") / (os.uname().machine + "-linux-gnu") / "openblas-openmp"
SKIPPED_STEPS = 3
SIZES = {  # as in the job files
    256: dict(layers=4, dim=256, ffn=704, heads=8, vocab=4096, seq=256, batch=4, torch_steps=12),
    512: dict(layers=8, dim=512, ffn=1408, heads=8, vocab=4096, seq=512, batch=2, torch_steps=8),
}
HYPERRUN = {"hyperrun 2 ranks": (2, "examples/bench_dim{}.textproto"),
            "hyperrun 1 rank": (1, "bench/train/dim{}_one_rank.textproto")}
TORCH = {"torch 2 threads": (1, 2), "torch ddp 2 ranks": (2, 1), "torch 1 thread": (1, 1)}  # ranks, threads
VERSUS = {"hyperrun 2 ranks": ("torch 2 threads", "torch ddp 2 ranks"), "hyperrun 1 rank": ("torch 1 thread",)}


def model_flops(m, attention=1.0):
    """FLOPs of one token, forwards and backwards; attention: the computed share of the scores."""
    weights = m["layers"] * (4 * m["dim"] ** 2 + 3 * m["dim"] * m["ffn"]) + m["vocab"] * m["dim"]
    return 6 * weights + attention * 12 * m["layers"] * m["seq"] * m["dim"]


def environment(a, threads, torch):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    if a.coretype is not None:
        env.pop("OPENBLAS_CORETYPE", None)
        if a.coretype:
            env["OPENBLAS_CORETYPE"] = a.coretype
    if torch:
        env.update(GLOO_SOCKET_IFNAME="lo", MALLOC_MMAP_THRESHOLD_=str(1 << 32), MALLOC_TRIM_THRESHOLD_=str(1 << 36),
                   MALLOC_TOP_PAD_=str(1 << 28))
        if OPENMP_BLAS.is_dir():
            env["LD_LIBRARY_PATH"] = str(OPENMP_BLAS)
        if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text():
            env["ATEN_CPU_CAPABILITY"] = "avx512"
    return env


def torch_version():
    try:
        found = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
        return found.stdout.strip() if found.returncode == 0 else None
    except OSError:
        return None


def output_of(command, env):
    ran = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


class RankStarts:
    """Unix times at which the ranks under a process were started, polled from /proc until all are there."""

    def __init__(self, pid, ranks):
        self.times, self.pid, self.ranks = {}, pid, ranks

    def poll(self):
        parents = {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                text = stat.read_text()
                fields = text.rpartition(")")[2].split()
                parents[int(stat.parent.name)] = (int(fields[1]), text.partition("(")[2].rpartition(")")[0], fields[19])
        shift = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        for pid, (parent, command, ticks) in parents.items():
            grandparent = parents.get(parent, (0,))[0]
            if command == "hyperrun" and self.pid == grandparent:
                self.times[pid] = int(ticks) / os.sysconf("SC_CLK_TCK") + shift
        return len(self.times) >= self.ranks

    def last(self):
        return max(self.times.values()) if len(self.times) >= self.ranks else None


def run_hyperrun(a, size, ranks, job):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="hyperrun-bench-"))
    try:
        with open(directory / "output", "w") as output:
            process = subprocess.Popen([a.hyperrun, "run", ROOT / job.format(size), "--run-dir", directory / "run", "--quiet"],
                                       env=environment(a, 1, torch=False), stdout=output, stderr=output)
            starts = RankStarts(process.pid, ranks)
            while process.poll() is None and not starts.poll():
                time.sleep(0.02)
            process.wait()
        if process.returncode != 0:
            raise SystemExit(f"{job.format(size)} ended with {process.returncode}:\n{(directory / 'output').read_text()}")
        metrics = [json.loads(line) for line in open(directory / "run" / "metrics.jsonl")]
        report = json.load(open(directory / "run" / "report.json"))
    finally:
        shutil.rmtree(directory)
    first_begin = metrics[0]["time_ns"] * 1e-9 - metrics[0]["step_seconds"]
    return dict(seconds=[m["step_seconds"] for m in metrics], parameters=report["parameters"],
                exposed_communication=statistics.median(m["exposed_communication"] for m in metrics[SKIPPED_STEPS:]),
                startup_seconds=first_begin - starts.last() if starts.last() else None)


def run_torch(a, size, ranks, threads):
    m = SIZES[size]
    command = [PYTHON, HERE / "torch_peer.py", "--ranks", ranks, "--threads", threads, "--steps", m["torch_steps"]]
    for name in ("dim", "layers", "heads", "vocab", "seq", "batch", "ffn"):
        command += ["--" + name, m[name]]
    result = json.loads(output_of(command, environment(a, threads, torch=True)).splitlines()[-1])
    return dict(seconds=result["seconds"], parameters=result["parameters"])


def run_setup(a, size, name):
    result = run_hyperrun(a, size, *HYPERRUN[name]) if name in HYPERRUN else run_torch(a, size, *TORCH[name])
    m = SIZES[size]
    result["tokens_per_second"] = m["batch"] * m["seq"] / statistics.median(result["seconds"][SKIPPED_STEPS:])
    return result


def probe(a, processes):
    return json.loads(output_of([a.sgemm_probe, processes], environment(a, 1, torch=False)))


def best_sgemm(probed):
    return max(probed["openblas_1024"], probed["packed_1024"])


def run_round(a, number, size, setups):
    """Rates of all set-ups, and their ratios."""
    results = {}
    sgemm = {"2": probe(a, 2), "1": probe(a, 1)}
    for name in setups if number % 2 == 0 else reversed(setups):
        results[name] = run_setup(a, size, name)
    if len({r["parameters"] for r in results.values()}) != 1:
        raise SystemExit("the set-ups do not train the same model: " +
                         ", ".join(f"{n} {r['parameters']}" for n, r in results.items()))
    for name, peers in VERSUS.items():
        if name not in results:
            continue
        ranks, ours = HYPERRUN[name][0], results[name]
        known = [results[p]["tokens_per_second"] for p in peers if p in results]
        ours["ratio"] = ours["tokens_per_second"] / max(known) if known else None
        rate = ours["tokens_per_second"] / ranks * 1e-9 / best_sgemm(sgemm[str(ranks)])
        ours["sgemm_share"] = rate * model_flops(SIZES[size])
        ours["sgemm_share_causal"] = rate * model_flops(SIZES[size], 0.5)
    return dict(round=number, size=size, load=os.getloadavg()[0], sgemm_gflops=sgemm, results=results)


def take_priority(nice):
    """Linux' autogroup weighs whole sessions against each other, so nice alone would count only within ours."""
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    with contextlib.suppress(OSError):
        os.setsid()
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/autogroup").write_text(str(nice))


def text(value, form):
    return "-" if value is None else format(value, form)


def print_round(r, out=sys.stdout):
    rates = "  ".join(f"{n} {v['tokens_per_second']:.0f}" for n, v in sorted(r["results"].items()))
    ratios = "  ".join(f"{n} {text(r['results'][n].get('ratio'), '.2f')}x" for n in VERSUS if n in r["results"])
    print(f"round {r['round']} dim {r['size']} load {r['load']:.1f} OpenBLAS {r['sgemm_gflops']['2']['openblas_1024']:.0f}, "
          f"ours {r['sgemm_gflops']['2']['packed_1024']:.0f} GFLOP/s a core: "
          f"{rates}  | {ratios}", file=out, flush=True)


def median(rounds, pick):
    known = [v for v in map(pick, rounds) if v is not None]
    return statistics.median(known) if known else None


def print_summary(rounds):
    print("\nmedians over the rounds        tokens/s  vs best torch  share of sgemm (causal half)  start-up    exposed comm")
    for size in sorted({r["size"] for r in rounds}):
        mine = [r for r in rounds if r["size"] == size]
        for name in mine[0]["results"]:
            of = lambda key: median(mine, lambda r: r["results"][name].get(key))
            line = f"dim {size}  {name:<19} {of('tokens_per_second'):10.0f}"
            if name in VERSUS:
                line += (f"  {text(of('ratio'), '12.2f')}x  {text(of('sgemm_share'), '14.0%')} "
                         f"({text(of('sgemm_share_causal'), '.0%')})         {text(of('startup_seconds'), '8.2f')} s"
                         f"  {text(of('exposed_communication'), '12.1%')}")
            print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build directory (build)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--sizes", type=lambda s: [int(v) for v in s.split(",")], default=sorted(SIZES))
    parser.add_argument("--setups", help="only these, by commas (default all)")
    parser.add_argument("--coretype", help='OPENBLAS_CORETYPE for all; "" removes it (default: as it is)')
    parser.add_argument("--json", type=pathlib.Path, help="append a line for each round and size here")
    parser.add_argument("--nice", type=int, default=0, help="priority of everything measured (-15 where allowed)")
    a = parser.parse_args()
    a.hyperrun, a.sgemm_probe = a.build / "bin" / "hyperrun", a.build / "bin" / "sgemm_probe"
    for path in (a.hyperrun, a.sgemm_probe):
        if not path.exists():
            raise SystemExit(f"{path} is missing: ninja -C {a.build} hyperrun sgemm_probe")
    if a.nice:
        take_priority(a.nice)
    setups = a.setups.split(",") if a.setups else [*HYPERRUN, *TORCH]
    version = torch_version()
    if version is None:
        print(f"no torch in {PYTHON} (apt-get install python3-torch): its set-ups are left out")
        setups = [s for s in setups if s not in TORCH]
    coretype = environment(a, 1, torch=False).get("OPENBLAS_CORETYPE", "unset")
    print(f"torch {version}, OPENBLAS_CORETYPE {coretype}, {os.cpu_count()} cores")
    rounds = []
    for number in range(a.rounds):
        for size in a.sizes:
            rounds.append(run_round(a, number, size, setups))
            print_round(rounds[-1])
            if a.json:
                with open(a.json, "a") as lines:
                    lines.write(json.dumps(dict(rounds[-1], torch=version, coretype=coretype)) + "\n")
    print_summary(rounds)


if __name__ == "__main__":
    main()
