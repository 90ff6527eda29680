"""A run on two nodes of Slurm, whose nodes are network namespaces (deploy/lab/slurm.sh): by the batch script, which
goes on after a signal and after a loss, by srun, and by hand within an allocation.

    slurm_test.py PROGRAM SOURCE
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LAB = SOURCE / "deploy" / "lab" / "slurm.sh"
SKIPPED = 77
NODES = ["hr-host1"] * 2 + ["hr-host2"] * 2
JOB = """
supernode { devices: 4 hbm: "24 MiB" }
model { layers: 1 hidden: 64 heads: 4 kv_heads: 2 vocab: 512 sequence: 64 tied_head: true }
parallel { mesh { name: "dp" size: 4 } presets: "dp" }
data { corpus: "corpus.txt" }
training { steps: STEPS batch: 8 lr: 3e-3 warmup_steps: 2 }
run { checkpoint_every: 20 restarts: 0 }
"""


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        up = subprocess.run([LAB, "up", "2"], capture_output=True, text=True)
        if up.returncode != 0:
            print(up.stderr)
            sys.exit(SKIPPED)

    @classmethod
    def tearDownClass(cls):
        subprocess.run([LAB, "down"], check=True)

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="hyperrun-slurm-test-")
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "corpus.txt").write_text("In the beginning was the word, and the word was long.\n" * 4000)
        self.job(20)

    def tearDown(self):
        self.temporary.cleanup()

    def job(self, steps):
        (self.folder / "job.textproto").write_text(JOB.replace("STEPS", str(steps)))

    def slurm(self, *command, timeout=200):
        environment = {**os.environ, "HYPERRUN": str(PROGRAM), "SHARE": str(SOURCE / "deploy"),
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return subprocess.run([LAB, "run", *map(str, command)], cwd=self.folder, env=environment, timeout=timeout,
                              capture_output=True, text=True)

    def hosts(self, run):
        return json.loads((self.folder / run / "manifest.json").read_text())["hosts"]

    def expect_two_nodes(self, done, run):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.hosts(run), NODES)

    def wait_until(self, true, what, seconds=200):
        end = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), end, what())
            time.sleep(0.3)

    def log(self, job):
        path = self.folder / f"hyperrun-{job}.log"
        return path.read_text() if path.exists() else "no log"

    def state(self, job):
        return self.slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T").stdout.strip()

    def test_by_hand_within_an_allocation(self):
        allocate = ["salloc", "--nodes=2", "--ntasks-per-node=2"]
        self.expect_two_nodes(self.slurm(*allocate, PROGRAM, "job.textproto", "--run-dir", "plain"), "plain")
        self.expect_two_nodes(self.slurm(*allocate, "mpirun", "--bind-to", "none", PROGRAM, "job.textproto",
                                         "--run-dir", "mpirun"), "mpirun")

    def test_by_srun(self):
        self.expect_two_nodes(self.slurm("srun", "--mpi=pmix", "--nodes=2", "--ntasks-per-node=2", PROGRAM,
                                         "job.textproto", "--run-dir", "srun"), "srun")

    def test_too_few_tasks_are_refused(self):
        done = self.slurm("salloc", "--nodes=2", PROGRAM, "job.textproto", "--ranks", "4", "--run-dir", "few")
        self.assertEqual(done.returncode, 5, done.stdout + done.stderr)
        self.assertIn("error[too-few-ranks]: the allocation has 2 tasks (1(x2) on hr-host[1-2])", done.stderr)
        self.assertIn("--nodes=2 --ntasks-per-node=2", done.stderr)
        self.assertFalse((self.folder / "few").exists())

    def test_a_task_hosts_several_devices(self):
        self.expect_two_nodes(self.slurm("salloc", "--nodes=2", PROGRAM, "job.textproto", "--run-dir", "several"),
                              "several")

    def test_one_node_from_another_host(self):
        done = self.slurm("salloc", "--nodes=1", "--ntasks=4", PROGRAM, "job.textproto", "--run-dir", "one")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(set(self.hosts("one"))), 1)
        self.assertNotEqual(self.hosts("one")[0], "hr-host0")

    def submit(self):
        said = self.slurm("sbatch", "--time=5", SOURCE / "deploy/slurm/hyperrun.sbatch", "job.textproto", "--quiet")
        return re.search(r"job (\d+)", said.stdout).group(1)

    def wait_for_checkpoint(self, job, attempt):
        folder = self.folder / f"runs/slurm-{job}/attempt-{attempt}/checkpoints"
        self.wait_until(lambda: list(folder.glob("step-*")), lambda: self.log(job))

    def kill_ranks(self, host):
        """As a node that fails; Slurm would see it half a minute later."""
        pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True).stdout.split()
        named = subprocess.run(["ps", "-o", "pid=,comm=", "-p", ",".join(pids)], capture_output=True, text=True).stdout
        ranks = [int(line.split()[0]) for line in named.splitlines() if line.split()[1] == "hyperrun"]
        self.assertEqual(len(ranks), 2, named)
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)

    def test_a_batch_job_goes_on_after_its_time_and_after_a_loss(self):
        self.job(300)
        number = self.submit()
        self.wait_for_checkpoint(number, 0)
        # Slurm sends this signal before the time is up.
        self.slurm("scancel", "--batch", "--signal=USR1", number)
        self.wait_for_checkpoint(number, 1)
        self.kill_ranks("hr-host2")
        self.wait_until(lambda: self.state(number) not in ("PENDING", "RUNNING", "COMPLETING"),
                        lambda: self.log(number))
        attempts = self.folder / f"runs/slurm-{number}"
        self.assertTrue((attempts / "attempt-2/checkpoints/step-000300").exists(), self.log(number))
        self.assertIn("the time is up; the job is queued again", self.log(number))
        self.assertIn("a device is gone; the job is queued again", self.log(number))
        for attempt in (1, 2):
            self.assertRegex(self.log(number), f"== attempt {attempt}, from runs/.*/attempt-{attempt - 1}/")
        self.assertEqual(self.hosts(f"runs/slurm-{number}/attempt-2"), NODES)

    def test_a_loss_needs_no_second_attempt(self):
        """A run goes on by itself, in its allocation."""
        (self.folder / "job.textproto").write_text(JOB.replace("STEPS", "300").replace(" restarts: 0", ""))
        number = self.submit()
        self.wait_for_checkpoint(number, 0)
        self.kill_ranks("hr-host2")
        self.wait_until(lambda: self.state(number) not in ("PENDING", "RUNNING", "COMPLETING"),
                        lambda: self.log(number))
        attempts = self.folder / f"runs/slurm-{number}"
        self.assertTrue((attempts / "attempt-0/checkpoints/step-000300").exists(), self.log(number))
        self.assertFalse((attempts / "attempt-1").exists(), self.log(number))
        self.assertIn("restart 1 of 3 after step ", self.log(number))

    def test_an_allocation_goes_on_without_a_node(self):
        """Its user wants it so (--no-kill). The node's network ends first, so nothing tells of its end."""
        (self.folder / "job.textproto").write_text(
            JOB.replace("STEPS", "2000").replace("restarts: 0", 'heartbeat: "1 s"'))
        self.addCleanup(self.setUpClass)  # other tests need the node
        self.addCleanup(self.tearDownClass)
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        with open(self.folder / "log", "w") as log:
            run = subprocess.Popen([LAB, "run", "salloc", "--no-kill", "--nodes=2", "--ntasks-per-node=2", PROGRAM,
                                    "job.textproto", "--run-dir", "gone"],
                                   cwd=self.folder, env=environment, stdout=log, stderr=log)
        said = (self.folder / "log").read_text
        self.wait_until(lambda: list((self.folder / "gone/checkpoints").glob("step-*")), said)
        subprocess.run(["ip", "-n", "hr-host2", "link", "set", "eth0", "down"], check=True)
        subprocess.run("ip netns pids hr-host2 | xargs kill -9", shell=True, check=True)
        self.wait_until(lambda: run.poll() is not None, said)
        self.assertIn("2 of 4 devices are there; the run goes on with 2", said())
        self.assertEqual(run.returncode, 0, said())

    def test_without_a_checkpoint_there_is_no_second_attempt(self):
        (self.folder / "job.textproto").write_text(
            JOB.replace("STEPS", "4000").replace("checkpoint_every: 20", "checkpoint_every: 4000"))
        number = self.submit()
        self.wait_until(lambda: "steps of" in self.log(number), lambda: self.log(number))
        self.slurm("scancel", "--batch", "--signal=USR1", number)
        self.wait_until(lambda: self.state(number) not in ("RUNNING", "COMPLETING"), lambda: self.log(number))
        self.assertEqual(self.state(number), "")
        self.assertIn("lower run.checkpoint_every", self.log(number))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
