"""The Helm chart, rendered: sound for Kubernetes and for the gateway, and refused where it makes no sense.

usage: python3 chart.py; HELM_RENDER is the renderer, VENV has the validators. See scripts/check-deploy.sh.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from shipped import ROOT, check

CHART = ROOT / "deploy" / "helm" / "loopbreaker"
VENV = Path(os.environ["VENV"])
KUBERNETES = ("1.25", "1.30", "1.37")
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

PLAIN = {}
LARGE = {
    "replicaCount": 3,
    "config": {
        "state": "redis://redis:6379",
        "log": {"url": "postgres://u:p@db:5432/log"},
        "admin": {"tenant_header": "X-Org"},
    },
    "tokens": [{"role": "operator", "sha256": HASH}],
    "policies": [{"id": "agents", "spec": {"tool_loops": {"enabled": True, "ladder": ["hint", "reject"]}}}],
    "sidecar": {"enabled": True, "redisUrlSecret": {"name": "vectors"}},
    "autoscaling": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"agents": [{"podSelector": {"matchLabels": {"role": "agent"}}}]},
    "env": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel:4318"}],
    "podAnnotations": {"team": "platform"},
    "podLabels": {"tier": "edge"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "edge", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
}
SMALL = {"persistence": {"enabled": True, "storageClass": "fast"}, "tokens": [{"role": "viewer", "sha256": HASH}]}
BARE = {
    "existingSecret": "mine",
    "networkPolicy": {"enabled": False},
    "serviceAccount": {"create": False},
    "podDisruptionBudget": {"enabled": False},
    "replicaCount": 2,
}


class Chart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_renderer(self, values, kubernetes="1.30", *flags):
        file = self.folder / "values.yaml"
        file.write_text(json.dumps(values))
        command = [os.environ["HELM_RENDER"], str(CHART), *flags, str(file)]
        env = {**os.environ, "KUBE_VERSION": f"{kubernetes}.0"}
        return subprocess.run(command, capture_output=True, env=env, timeout=60, text=True)

    def render(self, values, kubernetes="1.30"):
        run = self.run_renderer(values, kubernetes)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout, [document for document in yaml.safe_load_all(run.stdout) if document]

    def found(self, documents, kind):
        return [document for document in documents if document["kind"] == kind]

    def test_kubernetes_takes_it_whatever_is_set(self):
        for values in (PLAIN, LARGE, SMALL, BARE):
            for version in KUBERNETES:
                text, _ = self.render(values, version)
                file = self.folder / "rendered.yaml"
                file.write_text(text)
                command = [VENV / "bin" / "kubernetes-validate", "-k", version, "--strict", "--quiet", "--no-warn", file]
                run = subprocess.run(command, capture_output=True, text=True, timeout=120)
                self.assertEqual(run.returncode, 0, f"{values} on {version}\n{run.stdout}{run.stderr}")

    def test_the_gateway_takes_the_config_that_it_mounts(self):
        for values in (PLAIN, LARGE, SMALL):
            _, documents = self.render(values)
            (secret,) = self.found(documents, "Secret")
            mounted = self.folder / "etc"
            (mounted / "policies").mkdir(parents=True, exist_ok=True)
            for policies in self.found(documents, "ConfigMap"):
                (mounted / "policies" / "policies.yaml").write_text(policies["data"]["policies.yaml"])
            code, words = check(secret["stringData"]["loopbreaker.yaml"], mounted)
            self.assertEqual(code, 0, words)
            self.assertEqual("policy `agents`" in words, values is LARGE, words)

    def test_every_volume_that_is_mounted_is_there_and_every_port_has_a_name(self):
        for values in (PLAIN, LARGE, SMALL, BARE):
            _, documents = self.render(values)
            pod = self.found(documents, "Deployment")[0]["spec"]["template"]["spec"]
            volumes = {volume["name"] for volume in pod["volumes"]}
            ports = {port["name"] for container in pod["containers"] for port in container["ports"]}
            for container in pod["containers"]:
                self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)
                self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
            for service in self.found(documents, "Service"):
                self.assertLessEqual({port["targetPort"] for port in service["spec"]["ports"]}, ports)

    def test_selectors_fit_the_pods(self):
        _, documents = self.render(LARGE)
        labels = self.found(documents, "Deployment")[0]["spec"]["template"]["metadata"]["labels"].items()
        for kind, path in (
            ("Deployment", ["selector", "matchLabels"]),
            ("PodDisruptionBudget", ["selector", "matchLabels"]),
            ("NetworkPolicy", ["podSelector", "matchLabels"]),
            ("Service", ["selector"]),
        ):
            for document in self.found(documents, kind):
                wanted = document["spec"]
                for step in path:
                    wanted = wanted[step]
                self.assertLessEqual(wanted.items(), labels, kind)
        (monitor,) = self.found(documents, "ServiceMonitor")
        fitting = [
            service
            for service in self.found(documents, "Service")
            if monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        ]
        self.assertEqual([service["metadata"]["name"] for service in fitting], ["lb-loopbreaker-admin"])

    def test_two_gateways_on_one_volume_are_refused(self):
        run = self.run_renderer({"persistence": {"enabled": True}, "replicaCount": 2})
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("persistence is for one gateway", run.stderr)

    def test_what_the_chart_sets_itself_cannot_be_set_twice(self):
        run = self.run_renderer({"config": {"listen": "0.0.0.0:1"}})
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("config.listen is set by the chart", run.stderr)

    def test_notes_tell_when_each_pod_counts_for_itself(self):
        self.assertIn("each counts for itself", self.run_renderer({"replicaCount": 2}, "1.30", "-notes").stdout)
        self.assertNotIn("each counts for itself", self.run_renderer(LARGE, "1.30", "-notes").stdout)

    def test_values_have_a_schema_that_knows_every_default(self):
        schema = CHART / "values.schema.json"
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())

        def fits(values):
            file = self.folder / "all.json"
            file.write_text(json.dumps(values))
            command = [VENV / "bin" / "check-jsonschema", "--schemafile", schema, file]
            return subprocess.run(command, capture_output=True, timeout=60).returncode == 0

        self.assertTrue(fits(defaults))
        for values in (LARGE, SMALL, BARE):
            self.assertTrue(fits({**defaults, **values}))
        self.assertFalse(fits({**defaults, "replicas": 2}))
        self.assertFalse(fits({**defaults, "tokens": [{"role": "admin", "sha256": HASH}]}))
        self.assertEqual(set(json.loads(schema.read_text())["properties"]) - {"global"}, set(defaults))


if __name__ == "__main__":
    unittest.main()
