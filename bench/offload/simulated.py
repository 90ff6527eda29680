"""`hyperrun sim --json` of a job's text, on the profile that jobs.py writes beside it."""
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

from jobs import PROFILE, profile_text

DOES_NOT_FIT, NO_PLAN = "does not fit", "no plan in time"


def simulate(hyperrun, text, *options, patience=None):
    """Returns the report, or one of the two results above. Any other refusal is a fault of the script, which ends
    with its text."""
    late = threading.Event()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as out:
        job = pathlib.Path(folder) / "job.textproto"
        job.write_text(text)
        (job.parent / PROFILE).write_text(profile_text())
        with subprocess.Popen([hyperrun, "sim", job, *options, "--json", "--no-range"], stdout=out, text=True,
                              stderr=subprocess.PIPE) as process:
            timer = threading.Timer(patience or 0, lambda: late.set() or process.kill())
            if patience:
                timer.start()
            said = told(process)
            timer.cancel()
        if said == DOES_NOT_FIT:
            return said
        if process.returncode and late.is_set():
            return NO_PLAN
        if process.returncode:
            sys.exit(f"{said or f'hyperrun ended with {process.returncode}'}\nThe job that was refused:\n{text}")
        out.seek(0)
        return json.load(out)


def told(process):
    """The standard error of a simulation. It ends before the remedies of a job that does not fit: to find these takes
    long."""
    lines = []
    for line in process.stderr:
        if line.startswith(DOES_NOT_FIT) or "error[does-not-fit]" in line:
            process.kill()
            process.wait()
            return DOES_NOT_FIT
        lines.append(line)
    process.wait()
    return "".join(lines).strip()


def peaks(report):
    """The highest planned peak of any device, by tier."""
    tiers = [memory for device in report["devices"] for memory in device["memory"]]
    return {tier: max((m["planned_peak_bytes"] for m in tiers if m["tier"] == tier), default=0)
            for tier in ("hbm", "pool")}
