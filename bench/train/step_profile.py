#!/usr/bin/env python3
"""The parts of a step's time: sums over the slices of a run's trace, per device.

    bench/train/step_profile.py RUN_DIRECTORY [--device 0] [--by kind|name]

The run needs trace_steps in its job; leave the first three steps out with trace_first. By kind: gemm, attention,
rms-norm, all-reduce, ...; by name: what in the model it belongs to, with the layers added up. For what counts flops
the rate is given too. "between" is the time in which neither cube nor vector was at work: waiting for
communication and the executor's own cost between instructions. Reads trace.pftrace (protobuf wire format; the
few fields needed are read here). Standard library only."""
import argparse
import collections
import pathlib
import re
import signal

SLICE_BEGIN, SLICE_END, INSTANT = 1, 2, 3
COMPUTE = ("cube", "vector")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a message; nested messages stay bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
            value, at = data[at:at + size], at + size
        yield number, value


def message(data):
    """Last value of each field, for messages whose repeated fields do not matter."""
    return dict(fields(data))


class Trace:
    """slices: (device, stream, category, name, begin, end, flops); steps: times at which a step began."""

    def __init__(self, path):
        self.slices, self.steps = [], []
        self.names = {1: {}, 2: {}, 3: {}}  # categories, event names, argument keys
        self.tracks, self.open = {}, collections.defaultdict(list)
        for number, packet in fields(path.read_bytes()):
            if number == 1:
                self.packet(packet)

    def packet(self, data):
        p = message(data)
        if 12 in p:
            for kind, entry in fields(p[12]):
                named = message(entry)
                self.names[kind][named[1]] = named[2].decode()
        if 60 in p:
            track = message(p[60])
            if 5 in track and 8 not in track:  # a stream, not a device, not a counter
                self.tracks[track[1]] = ((track[5] >> 16) - 1, track[2].decode())
        if 11 in p:
            self.event(p.get(8, 0), p[11])

    def event(self, time, data):
        e = message(data)
        if e[9] == SLICE_BEGIN:
            flops = 0
            for number, argument in fields(data):
                a = message(argument) if number == 4 else {}
                if number == 4 and self.names[3][a[1]] == "flops":
                    flops = a.get(4, 0)
            category = self.names[1][e[3]] if 3 in e else ""
            self.open[e[11]].append((category, self.names[2][e[10]], time, flops))
        elif e[9] == SLICE_END:
            category, name, begin, flops = self.open[e[11]].pop()
            self.slices.append((*self.tracks[e[11]], category, name, begin, time, flops))
        elif e[9] == INSTANT:
            self.steps.append(time)


def covered(spans):
    total, reach = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reach))
        reach = max(reach, end)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--by", choices=("kind", "name"), default="kind")
    a = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    trace = Trace(a.run / "trace.pftrace")
    mine = [s for s in trace.slices if s[0] == a.device]
    if not mine:
        raise SystemExit(f"no slice of device {a.device}: does the job have trace_steps?")
    steps = max(1, len(trace.steps))  # a simulated trace is of one
    whole = max(s[5] for s in mine) - min(s[4] for s in mine)
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for _, stream, category, name, begin, end, flops in mine:
        what = category if a.by == "kind" else f"{category:<16} {re.sub(r'[0-9]+', '*', name)}"
        entry = sums[stream, what]
        entry[0] += end - begin
        entry[1] += 1
        entry[2] += flops
    print(f"{steps} steps of {whole / steps * 1e-6:.2f} ms, device {a.device}")
    print("stream      ms/step   share  calls/step  GFLOP/s  what")
    for (stream, what), (time, calls, flops) in sorted(sums.items(), key=lambda item: -item[1][0]):
        rate = f"{flops / time:8.1f}" if flops and time else " " * 8
        print(f"{stream:<8} {time / steps * 1e-6:10.3f} {time / whole:7.1%} {calls / steps:11.1f} {rate}  {what}")
    busy = covered((s[4], s[5]) for s in mine if s[1] in COMPUTE)
    print(f"{'between':<8} {(whole - busy) / steps * 1e-6:10.3f} {(whole - busy) / whole:7.1%}")


if __name__ == "__main__":
    main()
