"""A root folder that a test may change: an overlay over the one that make_root.sh has made.

A test calls enter() first, so nothing that it mounts outlives it.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def enter(before=None, after=None):
    """Goes on in a process with mounts of its own. `before` and `after` are commands around it, outside: others see
    what they do. The test is skipped if the first one fails."""
    if os.environ.get("HYPERRUN_OWN_MOUNTS"):
        return
    if os.geteuid() != 0:
        skip("not root, so no root folder can be entered")
    unshare = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*unshare, "true"]).returncode != 0:
        skip("no mount namespace can be made")
    if before:
        done = run(*before)
        if done.returncode != 0:
            skip(done.stderr)
    try:
        status = subprocess.call([*unshare, sys.executable, "-B", *sys.argv],
                                 env={**os.environ, "HYPERRUN_OWN_MOUNTS": "1"})
    finally:
        if after:
            must(*after)
    sys.exit(status)


def package_of(build):
    packages = sorted((build / "packages").glob("hyperrun_*.deb"))
    if not packages or not (build / "image" / "base.packages").exists():
        skip("there is no package, or no root folder: tests/deploy/make_root.sh could not make them")
    return packages[-1]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def must(*command, **options):
    done = run(*command, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class CleanRoot:
    """An overlay over `base`. What is written goes to `scratch`, and away with it."""

    def __init__(self, base, scratch=None):
        self._own = tempfile.TemporaryDirectory(prefix="hyperrun-root-") if scratch is None else None
        self._scratch = pathlib.Path(scratch or self._own.name)
        self.path = self._scratch / "root"
        changes = self._scratch / "changes"
        # An overlay cannot lie on another overlay, which /tmp of a container is.
        changes.mkdir()
        must("mount", "-t", "tmpfs", "tmpfs", changes)
        for folder in (self.path, changes / "upper", changes / "work"):
            folder.mkdir()
        layers = f"lowerdir={base},upperdir={changes}/upper,workdir={changes}/work"
        overlay = run("mount", "-t", "overlay", "overlay", "-o", layers, self.path)
        if overlay.returncode != 0:
            skip(f"no overlay can be mounted: {overlay.stderr}")
        self._changes = changes
        self._mounted = []

    def mount(self, kind, at, options="defaults"):
        (self.path / at).mkdir(parents=True, exist_ok=True)
        must("mount", "-t", kind, "-o", options, kind, self.path / at)
        self._mounted.append(self.path / at)

    def close(self):
        for folder in [*self._mounted[::-1], self.path, self._changes]:
            must("umount", "--lazy", folder)
        if self._own:
            self._own.cleanup()

    def run(self, *command, user=0, **options):
        return run("chroot", f"--userspec={user}:{user}", self.path, *command, **options)

    def must(self, *command, user=0, **options):
        return must("chroot", f"--userspec={user}:{user}", self.path, *command, **options)
