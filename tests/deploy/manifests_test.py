"""Checks deploy/kubernetes: each object against the schema beside this file, and what no schema sees.

    manifests_test.py FOLDER PROGRAM      the folder deploy/kubernetes, and the built hyperrun

Exits with 77 where Debian's python3-yaml or python3-jsonschema is missing.
"""
import copy
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"{missing}: install python3-yaml and python3-jsonschema")
    sys.exit(77)

FOLDER, PROGRAM = pathlib.Path(sys.argv[1]), sys.argv[2]
SCHEMA = json.loads((pathlib.Path(__file__).parent / "kubernetes.schema.json").read_text())
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def objects(name):
    return [document for document in yaml.safe_load_all((FOLDER / name).read_text()) if document]


def the(kind, name, where):
    found = [o for o in objects(where) if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{where}: {len(found)} {kind} {name}"
    return found[0]


def faults(document):
    """What the schema of the document's kind says against it."""
    schema = {**SCHEMA, "oneOf": [{"$ref": f"#/definitions/{document['kind']}"}]}
    validator = jsonschema.Draft7Validator(schema)
    found = []
    for error in validator.iter_errors(document):
        found += [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in error.context or [error]]
    return found


def pod_specs(document):
    if document["kind"] == "StatefulSet":
        yield document["spec"]["template"]["spec"]
    if document["kind"] == "MPIJob":
        for replicas in document["spec"]["mpiReplicaSpecs"].values():
            yield replicas["template"]["spec"]


def quantity(text):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text).groups()
    return float(number) * UNITS.get(unit, 1)


class Manifests(unittest.TestCase):
    files = sorted(path.name for path in FOLDER.glob("*.yaml"))

    def test_there_are_both(self):
        self.assertEqual(self.files, ["mpijob.yaml", "statefulset.yaml"])

    def test_every_object_is_as_the_api_wants_it(self):
        for name in self.files:
            for document in objects(name):
                self.assertEqual(faults(document), [], f"{name}: {document['kind']}")

    def test_the_schema_finds_mistakes(self):
        def broken(change):
            job = copy.deepcopy(the("MPIJob", "hyperrun", "mpijob.yaml"))
            change(job["spec"])
            return faults(job)

        self.assertTrue(broken(lambda spec: spec.update(slotsPerWorker="2")))
        self.assertTrue(broken(lambda spec: spec.update(launcherCreationPolicy="Late")))
        self.assertTrue(broken(lambda spec: spec["runPolicy"].update(backOffLimit=3)))
        self.assertTrue(broken(lambda spec: spec["mpiReplicaSpecs"].pop("Launcher")))
        self.assertTrue(broken(lambda spec: spec["mpiReplicaSpecs"]["Launcher"].update(replicas=2)))
        self.assertTrue(broken(lambda spec: spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"].pop("containers")))

    def test_what_is_mounted_is_there(self):
        for name in self.files:
            everything = objects(name)
            names = {(o["kind"], o["metadata"]["name"]) for o in everything}
            for document in everything:
                claims = {c["metadata"]["name"] for c in document["spec"].get("volumeClaimTemplates", [])} \
                    if document["kind"] == "StatefulSet" else set()
                for pod in pod_specs(document):
                    volumes = {v["name"]: v for v in pod.get("volumes", [])}
                    for container in pod["containers"]:
                        for mount in container.get("volumeMounts", []):
                            self.assertIn(mount["name"], volumes.keys() | claims)
                        for source in container.get("envFrom", []):
                            self.assertIn(("ConfigMap", source["configMapRef"]["name"]), names)
                    for volume in volumes.values():
                        if "configMap" in volume:
                            self.assertIn(("ConfigMap", volume["configMap"]["name"]), names)
                        if "persistentVolumeClaim" in volume:
                            claim = volume["persistentVolumeClaim"]["claimName"]
                            self.assertIn(("PersistentVolumeClaim", claim), names)

    def test_probes_ask_a_port_that_is_open(self):
        for name in self.files:
            for document in objects(name):
                for pod in pod_specs(document):
                    for container in pod["containers"]:
                        ports = {p["name"]: p["containerPort"] for p in container.get("ports", [])}
                        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                            if probe in container:
                                self.assertEqual(ports[container[probe]["tcpSocket"]["port"]], sshd_port())

    def test_the_service_finds_the_pods(self):
        service = the("Service", "hyperrun", "statefulset.yaml")
        pods = the("StatefulSet", "hyperrun", "statefulset.yaml")
        labels = pods["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
        self.assertEqual(pods["spec"]["selector"]["matchLabels"], labels)
        self.assertEqual(pods["spec"]["serviceName"], service["metadata"]["name"])
        self.assertEqual(service["spec"]["ports"][0]["port"], sshd_port())

    def test_values_that_stand_twice_agree(self):
        values = the("ConfigMap", "hyperrun", "statefulset.yaml")["data"]
        self.assertEqual(int(values["HOSTS"]), the("StatefulSet", "hyperrun", "statefulset.yaml")["spec"]["replicas"])
        self.assertEqual(values["SERVICE"], the("Service", "hyperrun", "statefulset.yaml")["metadata"]["name"])

    def test_jobs_fit_into_the_pods(self):
        """Slots for all devices; the HBM of a pod's devices and MPI's room (docs/hosts.md) in /dev/shm."""
        for name in self.files:
            text = the("ConfigMap", "hyperrun-job", name)["data"]["job.textproto"]
            devices = int(re.search(r"devices: (\d+)", text).group(1))
            hbm = int(re.search(r'hbm: "(\d+) MiB"', text).group(1)) * 2**20
            if name == "mpijob.yaml":
                spec = the("MPIJob", "hyperrun", name)["spec"]
                slots = spec["slotsPerWorker"]
                hosts = spec["mpiReplicaSpecs"]["Worker"]["replicas"] + spec["runLauncherAsWorker"]
            else:
                values = the("ConfigMap", "hyperrun", name)["data"]
                slots, hosts = int(values["SLOTS"]), int(values["HOSTS"])
            self.assertGreaterEqual(slots * hosts, devices)
            of_pod = math.ceil(devices / hosts) * hbm
            room = of_pod + max(of_pod / 20, slots * 4 * 2**20)
            for document in objects(name):
                for pod in pod_specs(document):
                    shm = next(v["emptyDir"] for v in pod["volumes"] if v["name"] == "shm")
                    self.assertEqual(shm["medium"], "Memory")
                    self.assertGreaterEqual(quantity(shm["sizeLimit"]), room)
                    self.assertGreater(quantity(pod["containers"][0]["resources"]["limits"]["memory"]),
                                       quantity(shm["sizeLimit"]))

    def test_jobs_are_jobs(self):
        for name in self.files:
            with tempfile.TemporaryDirectory() as folder:
                corpus, job = pathlib.Path(folder) / "corpus.txt", pathlib.Path(folder) / "job.textproto"
                corpus.write_text("In the beginning was the word.\n" * 1000)
                text = the("ConfigMap", "hyperrun-job", name)["data"]["job.textproto"]
                job.write_text(re.sub('corpus: "[^"]*"', f'corpus: "{corpus}"', text))
                done = subprocess.run([PROGRAM, "check", job], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


def sshd_port():
    config = (FOLDER.parent / "image" / "sshd_config").read_text()
    return int(re.search(r"^Port (\d+)$", config, re.MULTILINE).group(1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
