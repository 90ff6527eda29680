"""What the pods of deploy/kubernetes do, without Kubernetes: each is a network namespace (deploy/lab/netns.sh) with a
name, processes, a root folder of the image, /dev/shm, volumes and a user of its own, and runs the command that its
manifest gives it. Names of services stand in /etc/hosts.

    pods_test.py BUILD SOURCE
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import clean_root

try:
    import yaml
except ImportError:
    clean_root.skip("no yaml: install python3-yaml")

BUILD, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LAB = SOURCE / "deploy" / "lab" / "netns.sh"
PACKAGE = clean_root.package_of(BUILD)
clean_root.enter(before=[LAB, "up", "2"], after=[LAB, "down"])
USER = 1000
# Some seconds of steps, so that a pod can be lost in the middle of them.
JOB = """
supernode { devices: 4 hbm: "24 MiB" }
model { layers: 1 hidden: 64 heads: 4 kv_heads: 2 vocab: 512 sequence: 64 tied_head: true }
parallel { mesh { name: "dp" size: 4 } presets: "dp" }
data { corpus: "/job/corpus.txt" }
training { steps: STEPS batch: 8 lr: 3e-3 warmup_steps: 2 }
run { checkpoint_every: 20 restarts: 0 }
"""


def manifest(name):
    return {(o["kind"], o["metadata"]["name"]): o
            for o in yaml.safe_load_all((SOURCE / "deploy/kubernetes" / name).read_text()) if o}


def wait_until(true, what, seconds=200):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what()}")
        time.sleep(0.3)


class Pod:
    """A pod of the manifest's spec on the lab's host of this number. `volumes` are folders by their volume's name."""

    def __init__(self, number, name, spec, environment, volumes, names, scratch):
        self.container = spec["containers"][0]
        self.user = spec["securityContext"]["runAsUser"]
        self.host, self.name, self.environment = f"hr-host{number}", name, environment
        folder = scratch / name
        folder.mkdir()
        self.root = clean_root.CleanRoot(BUILD / "image" / "base", folder)
        clean_root.must(SOURCE / "deploy/image/install", PACKAGE, self.root.path)
        (self.root.path / "etc/hosts").write_text(names)
        self.root.mount("devpts", "dev/pts", "newinstance,ptmxmode=0666,mode=620")
        for mount in self.container["volumeMounts"]:
            self._mount(mount, next((v for v in spec["volumes"] if v["name"] == mount["name"]), {}), volumes)
        self.log = open(scratch / f"{name}.log", "a+")
        self.process = None

    def _mount(self, mount, volume, volumes):
        at = mount["mountPath"].lstrip("/")
        if "emptyDir" in volume:
            size = volume["emptyDir"]["sizeLimit"].replace("Gi", "g")
            self.root.mount("tmpfs", at, f"mode=1777,size={size}")
            return
        (self.root.path / at).mkdir(parents=True, exist_ok=True)
        clean_root.must("mount", "--bind", volumes[mount["name"]], self.root.path / at)
        self.root._mounted.append(self.root.path / at)

    def start(self):
        words = " ".join(self.container["command"] + self.container.get("args", []))
        inner = f"hostname {self.name}; mount -t proc proc {self.root.path}/proc; " \
                f"exec chroot --userspec={self.user}:{self.user} --groups={self.user} {self.root.path} {words}"
        environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/home/hyperrun", **self.environment}
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.host, "unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount",
             "/bin/sh", "-c", inner], env=environment, stdout=self.log, stderr=subprocess.STDOUT)
        return self

    def lose(self):
        """As a node that fails: all processes are gone at once."""
        # Some may end by themselves meanwhile.
        clean_root.run("sh", "-c", f"ip netns pids {self.host} | xargs -r kill -9")
        self.process.wait(timeout=100)

    def terminate(self):
        """As Kubernetes ends a pod: its first process gets SIGTERM, and some time."""
        first = clean_root.must("pgrep", "--parent", self.process.pid).split()[0]
        os.kill(int(first), signal.SIGTERM)
        self.process.wait(timeout=100)

    def programs(self):
        pids = clean_root.must("ip", "netns", "pids", self.host).split()
        return set(clean_root.run("ps", "-o", "comm=", "-p", ",".join(pids)).stdout.split()) - {"unshare"}

    def said(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def close(self):
        if self.process and self.process.poll() is None:
            self.lose()
        self.root.close()
        self.log.close()


class Pods(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="hyperrun-pods-")
        self.scratch = pathlib.Path(self.temporary.name)
        self.pods = []
        self.volumes = {name: self.scratch / f"volume-{name}" for name in ("ssh", "job", "runs")}
        for folder in self.volumes.values():
            folder.mkdir()
        os.chown(self.volumes["runs"], USER, USER)
        corpus = self.volumes["job"] / "corpus.txt"
        corpus.write_text("In the beginning was the word, and the word was long.\n" * 4000)
        self.make_keys(self.volumes["ssh"])

    def tearDown(self):
        for pod in self.pods:
            pod.close()
        self.temporary.cleanup()

    def make_keys(self, folder):
        """As a mounted Secret has them: root's, readable for the pod's group."""
        (folder / "made").mkdir()
        key = folder / "id_rsa"
        root = clean_root.CleanRoot(BUILD / "image" / "base")
        try:
            root.must("ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", "/tmp/id_rsa")
            key.write_bytes((root.path / "tmp/id_rsa").read_bytes())
            (folder / "authorized_keys").write_bytes((root.path / "tmp/id_rsa.pub").read_bytes())
        finally:
            root.close()
        (folder / "made").rmdir()
        for file in (key, folder / "authorized_keys"):
            os.chown(file, 0, USER)
            file.chmod(0o440)

    def pod(self, *arguments):
        self.pods.append(Pod(*arguments, self.volumes, self.names, self.scratch))
        return self.pods[-1]

    def everything_said(self):
        return "\n".join(f"-- {pod.name}\n{pod.said()}" for pod in self.pods)

    def manifest_of_run(self, path):
        return json.loads((self.volumes["runs"] / path / "manifest.json").read_text())

    def checkpoints(self, attempt):
        return list((self.volumes["runs"] / f"attempts/attempt-{attempt}/checkpoints").glob("step-*"))

    def test_a_stateful_set_trains_and_goes_on_after_losses(self):
        objects = manifest("statefulset.yaml")
        spec = objects["StatefulSet", "hyperrun"]["spec"]["template"]["spec"]
        values = {**objects["ConfigMap", "hyperrun"]["data"], "JOB": "/job/job.textproto"}
        (self.volumes["job"] / "job.textproto").write_text(JOB.replace("STEPS", "300"))
        self.names = "127.0.0.1 localhost\n" + "".join(
            f"10.78.0.{10 + i} hyperrun-{i}.hyperrun hyperrun-{i}\n" for i in range(2))
        first = self.pod(0, "hyperrun-0", spec, values).start()
        second = self.pod(1, "hyperrun-1", spec, values).start()

        wait_until(lambda: self.checkpoints(0), self.everything_said)
        first.lose()
        first.start()

        wait_until(lambda: self.checkpoints(1), self.everything_said)
        self.assertIn("from /runs/attempts/attempt-0/checkpoints/step-", first.said())
        second.lose()
        self.assertEqual(first.process.wait(timeout=200), 8, self.everything_said())  # a device is lost
        first.start()
        second.start()

        wait_until(lambda: self.checkpoints(2), self.everything_said)
        first.terminate()
        self.assertEqual(self.manifest_of_run("attempts/attempt-2")["exit_status"], 128 + signal.SIGTERM)
        # mpirun's daemon ends once it finds mpirun gone.
        wait_until(lambda: second.programs() == {"pod.sh", "sshd"}, lambda: str(second.programs()))
        first.start()

        runs = self.volumes["runs"]
        wait_until(lambda: (runs / "done").exists(), self.everything_said)
        last = self.manifest_of_run("attempts/attempt-3")
        self.assertEqual(last["hosts"], ["hyperrun-0"] * 2 + ["hyperrun-1"] * 2)
        self.assertTrue((runs / "attempts/attempt-3/checkpoints/step-000300").exists())
        # A StatefulSet starts an ended pod again; the run must not be.
        first.lose()
        first.start()
        wait_until(lambda: "the run is over" in first.said(), first.said)
        self.assertFalse((runs / "attempts/attempt-4").exists())

    def test_the_pods_of_an_mpi_job(self):
        """The environment and the host file are those that the operator makes."""
        objects = manifest("mpijob.yaml")
        spec = objects["MPIJob", "hyperrun"]["spec"]
        (self.volumes["job"] / "job.textproto").write_text(JOB.replace("STEPS", "20"))
        hosts = [("hyperrun-launcher", "Launcher"), ("hyperrun-worker-0", "Worker")]
        self.names = "127.0.0.1 localhost\n" + "".join(
            f"10.78.0.{10 + i} {name}.hyperrun.default.svc {name}\n" for i, (name, _) in enumerate(hosts))
        (self.volumes["job"] / "hostfile").write_text(
            "".join(f"{name}.hyperrun.default.svc slots={spec['slotsPerWorker']}\n" for name, _ in hosts))
        operators = {"OMPI_MCA_orte_keep_fqdn_hostnames": "true", "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
                     "OMPI_MCA_orte_default_hostfile": "/job/hostfile", "OMPI_MCA_orte_set_default_slots": "2"}
        pods = []
        for i, (name, role) in enumerate(hosts):
            template = spec["mpiReplicaSpecs"][role]["template"]["spec"]
            template["containers"][0]["volumeMounts"].append({"name": "ssh", "mountPath": spec["sshAuthMountPath"]})
            pods.append(self.pod(i, name, template, operators if role == "Launcher" else {}))
        launcher, worker = pods
        worker.start()
        wait_until(lambda: clean_root.run("ip", "netns", "exec", "hr-host1", "sh", "-c",
                                          "ss -ltn 2>/dev/null | grep -q :2222").returncode == 0, worker.said)
        launcher.start()
        self.assertEqual(launcher.process.wait(timeout=200), 0, self.everything_said())
        self.assertEqual(self.manifest_of_run("hyperrun/attempt-0")["hosts"],
                         ["hyperrun-launcher"] * 2 + ["hyperrun-worker-0"] * 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
