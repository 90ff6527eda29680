"""The simulated benchmarks run, and end with an error where a job is refused: scripts_test.py HYPERRUN"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
SWEEP = ("offload/sweep.py", "--model", "llama8b", "--tries", "1")
HYPERRUN = ""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, script, *options):
        command = [sys.executable, "-B", BENCH / script, "--hyperrun", HYPERRUN, *options]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def rows(self, script, *options):
        """What a script that ends well has added to its file."""
        out = self.folder / "rows.jsonl"
        ran = self.run_script(script, *options, "--json", out)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return [json.loads(line) for line in out.read_text().splitlines()]

    def test_sweep(self):
        [row] = self.rows(*SWEEP, "--sequence", "8192", "--tokens", "16384", "--only", "^dp8 zero1$")
        self.assertLessEqual(row["baseline"]["hbm"], 64 * 2**30)
        self.assertGreater(row["bound any"]["hbm"], 64 * 2**30)
        self.assertGreater(row["any activations"]["pool"], 0)

    def test_against_reactive(self):
        [row] = self.rows("offload/against_reactive.py", "--job", "dp8 zero3, 2048 x 2048")
        free, reactive, planned = (row[policy]["seconds"] for policy in ("none", "reactive", "hyperoffload"))
        self.assertLess(free, planned)
        self.assertLess(planned, reactive)
        self.assertLessEqual(row["hyperoffload"]["hbm"], 0.6 * row["none"]["hbm"])

    def test_against_reactive_without_clipping(self):
        """Updates amid the backward pass hide the optimizer's transfers, which at the end of the step nothing hides."""
        jobs = [option for clip in ("", " unclipped") for option in ("--job", f"dp8{clip}, 8192 x 16384")]
        clipped, unclipped = self.rows("offload/against_reactive.py", *jobs)
        self.assertEqual(clipped["none"]["hbm"], unclipped["none"]["hbm"])
        planned = unclipped["hyperoffload"]
        self.assertLess(planned["exposed"], 0.05 * planned["busy"])
        self.assertLess(2 * planned["seconds"], unclipped["reactive"]["seconds"])
        self.assertGreater(clipped["hyperoffload"]["exposed"], 0.5 * clipped["hyperoffload"]["busy"])

    def test_host_swap(self):
        free, moved, *_ = self.rows("offload/host_swap.py", "--less", "1.6")
        self.assertAlmostEqual((free["hbm"] - moved["hbm"]) / 2**30, 1.6, delta=0.2)

    def test_beyond_hbm(self):
        ran = self.run_script("generation/beyond_hbm.py", "--context", "131072")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        of_policy = {line.split()[3]: line for line in ran.stdout.splitlines()[1:] if " 24 GiB " in line}
        self.assertIn("does not fit", of_policy["none"])
        self.assertRegex(of_policy["hyperoffload"], r"-2\d\.\d%\s+\+0\.00%")

    def test_tiles(self):
        whole, cut = self.rows("mpmd/chunks.py", "--no-run", "--layouts", "tp 8", "--tiles", "1", "4")
        self.assertEqual((whole["layout"], whole["what"], cut["tiles"]), ("tp 8", "simulated", 4))
        self.assertLess(whole["masked"], 0.5)
        self.assertGreater(cut["masked"], 0.9)
        self.assertLess(cut["step_ns"], whole["step_ns"])
        (self.folder / "rows.jsonl").unlink()
        whole, cut = self.rows("mpmd/tiles.py", "--no-run", "--layers", "2", "--tiles", "1", "4")[-2:]
        self.assertLess(whole["masked"], 0.2)
        self.assertGreater(cut["masked"], 0.9)
        self.assertGreater(cut["exchanges_ns"], whole["exchanges_ns"])

    def test_order(self):
        """Of a strategy's words the job that the planner means."""
        spec = importlib.util.spec_from_file_location("order", BENCH / "plan" / "order.py")
        order = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(order)
        self.assertEqual(order.recompute("dense", "dp 8, 1 sequence a micro-batch"), "")
        self.assertEqual(order.recompute("dense", "dp 8, 1 sequence a micro-batch, recompute full"),
                         ' recompute { policy: "full" first_layer: 0 }')
        self.assertEqual(order.recompute("dense", "dp 8, recompute selective in 1 layer of a device"),
                         ' recompute { policy: "selective" last_layer: 0 }')
        self.assertEqual(order.recompute("dense", "dp 8, recompute selective, full in 1 layer of a device"),
                         ' recompute { policy: "full" last_layer: 0 } recompute { policy: "selective" first_layer: 1 }')

    def test_refused(self):
        """Eight dies do not divide the sequence. A refusal that is not for want of memory is never a row."""
        options = ("--sequence", "8191", "--tokens", "8191", "--only", "^cp8 zero1$")
        for script in ((*SWEEP, *options), ("offload/against_reactive.py", "--job", "cp8 zero1, 8191 x 8191")):
            with self.subTest(script[0]):
                ran = self.run_script(*script)
                self.assertEqual(ran.returncode, 1)
                self.assertIn("error[bad-layout]", ran.stderr)
                self.assertNotIn("Traceback", ran.stderr)
        ran = self.run_script("generation/beyond_hbm.py", "--context", "-1")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("error[bad-value]", ran.stderr)


if __name__ == "__main__":
    HYPERRUN = sys.argv.pop(1)
    unittest.main()
