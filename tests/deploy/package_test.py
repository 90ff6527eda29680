"""The Debian package on a clean root: it installs, runs for a user, and is removed without a trace.

    package_test.py BUILD       the build folder, in which make_root.sh has made package and root
"""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import clean_root

BUILD = pathlib.Path(sys.argv[1]).resolve()
clean_root.enter()
PACKAGE = clean_root.package_of(BUILD)
EXAMPLES = "/usr/share/hyperrun/examples"
USER = 1000
# dpkg's own files, and what it and ldconfig write in passing.
PASSING = re.compile(r"\./(var/lib/dpkg|var/log|var/cache|tmp|proc|dev|etc/ld\.so\.cache|home)(/|$)")


def files(root):
    names = clean_root.must("find", ".", "-xdev", cwd=root.path).splitlines()
    return sorted(name for name in names if not PASSING.match(name))


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = clean_root.CleanRoot(BUILD / "image" / "base")
        cls.root.mount("proc", "proc")
        cls.root.mount("tmpfs", "dev/shm", "mode=1777")
        cls.root.mount("devpts", "dev/pts", "newinstance,ptmxmode=0666")
        cls.before = files(cls.root)
        (cls.root.path / "tmp/hyperrun.deb").write_bytes(PACKAGE.read_bytes())
        cls.root.must("dpkg", "--install", "/tmp/hyperrun.deb")

    @classmethod
    def tearDownClass(cls):
        cls.root.close()

    def job(self, example, *changes):
        """The installed example, shortened, beside the installed ones: its corpus is named from there."""
        text = (self.root.path / EXAMPLES[1:] / f"{example}.textproto").read_text()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        text = text.replace("../data", "/usr/share/hyperrun/data")
        (self.root.path / "tmp" / f"{example}.textproto").write_text(text)
        return f"/tmp/{example}.textproto"

    def test_1_needs_nothing_that_is_not_there(self):
        self.assertEqual(self.root.run("dpkg", "--audit").stdout, "")
        for program in ("hyperrun", "omni_prepare"):
            self.assertNotIn("not found", self.root.must("ldd", f"/usr/bin/{program}"))
        self.assertIn("openblas-pthread", self.root.must("ldd", "/usr/bin/hyperrun"))
        self.assertFalse((self.root.path / "usr/bin/gcc").exists())

    def test_2_a_user_trains_the_quickstart(self):
        job = self.job("quickstart", ("steps: 400", "steps: 12"), ("warmup_steps: 40", "warmup_steps: 2"),
                       ("tokens: 80", "tokens: 8"))
        said = self.root.must("env", "HOME=/tmp", "TMPDIR=/tmp", "hyperrun", job, "--run-dir", "/tmp/run", user=USER)
        self.assertIn("run directory: /tmp/run", said)
        self.assertTrue((self.root.path / "tmp/run/checkpoints/step-000012/model.safetensors").exists())

    def test_3_examples_find_their_data(self):
        if not (self.root.path / "usr/share/hyperrun/data/king-james.txt").exists():
            self.skipTest("the source folder had no corpus, so the package has none")
        for example in ("quickstart", "sums"):
            self.root.must("hyperrun", "check", f"{EXAMPLES}/{example}.textproto", user=USER)

    def test_4_has_the_pages_with_their_neighbours(self):
        names = clean_root.must("dpkg-deb", "--contents", PACKAGE)
        for page in ("README.md", "docs/tutorial.md", "bench/results/host.md"):
            self.assertIn(f"./usr/share/doc/hyperrun/{page}", names)

    def test_5_goes_without_a_trace(self):
        self.assertNotEqual(files(self.root), self.before)
        self.root.must("dpkg", "--purge", "hyperrun")
        self.assertEqual(files(self.root), self.before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
