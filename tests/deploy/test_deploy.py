"""Files in deploy/ speak of metrics, flags, variables, settings and files that are really there."""

import fnmatch
import json
import re
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from shipped import ROOT, Gateway, Mock, check, said

DEPLOY = ROOT / "deploy"
DASHBOARD = DEPLOY / "grafana" / "loopbreaker.json"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
# Prometheus makes this one itself.
FOREIGN_METRICS = {"up"}


def read(*path):
    return DEPLOY.joinpath(*path).read_text()


class Metrics(unittest.TestCase):
    """Dashboard and alerts against /metrics of a running gateway."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        cls.mock = Mock(folder, "mock")
        cls.gateway = Gateway(folder, "gateway", {}, cls.mock.url)
        with urllib.request.urlopen(f"{cls.gateway.url}/metrics", timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        cls.samples = {}
        for line in lines:
            name, labels = re.match(r"([a-z_]+)(?:\{(.*)\})? ", line).groups()
            pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels or ""))
            cls.samples.setdefault(name, []).append(pairs)

    @classmethod
    def tearDownClass(cls):
        cls.gateway.stop()
        cls.mock.stop()
        cls.folder.cleanup()

    def expressions(self):
        dashboard = json.loads(DASHBOARD.read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                yield f"panel `{panel['title']}`", target["expr"]
        for annotation in dashboard["annotations"]["list"]:
            yield "an annotation", annotation["expr"]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield "a variable", variable["query"]["query"]
        for alert in re.split(r"^ +- alert: ", ALERTS.read_text(), flags=re.MULTILINE)[1:]:
            name, rest = alert.split("\n", 1)
            yield f"alert {name}", re.search(r"expr: (.*?)\n +(?:for|labels):", rest, re.DOTALL).group(1)

    def test_every_metric_of_the_dashboard_and_the_alerts_is_there(self):
        for where, expression in self.expressions():
            for name in re.findall(r"\b((?:loopbreaker|process)_[a-z_]+|up(?=\{))", expression):
                with self.subTest(where=where, metric=name):
                    self.assertIn(name, self.samples.keys() | FOREIGN_METRICS)

    def test_every_label_value_that_they_ask_for_is_there(self):
        seen = 0
        for where, expression in self.expressions():
            for name, labels in re.findall(r"\b((?:loopbreaker|process)_[a-z_]+)\{([^}]*)\}", expression):
                for label, operator, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', labels):
                    if label in ("instance", "job"):
                        continue  # Prometheus sets these.
                    known = {sample.get(label) for sample in self.samples[name]}
                    wanted = value.split("|") if "~" in operator else [value]
                    for one in wanted:
                        seen += 1
                        with self.subTest(where=where, metric=name, label=label):
                            self.assertIn(one, known)
        self.assertGreater(seen, 10)

    def test_every_label_that_they_group_by_is_there(self):
        for where, expression in self.expressions():
            names = re.findall(r"\b((?:loopbreaker|process)_[a-z_]+)", expression)
            labels = {label for name in names for sample in self.samples.get(name, []) for label in sample}
            for group in re.findall(r"by \(([^)]*)\)", expression):
                for label in group.split(","):
                    with self.subTest(where=where, label=label):
                        self.assertIn(label.strip(), labels | {"instance"})

    def test_every_alert_says_what_to_do_and_is_tried(self):
        tests = read("prometheus", "alerts.test.yaml")
        names = re.findall(r"- alert: (\w+)", ALERTS.read_text())
        self.assertGreater(len(names), 8)
        for name in names:
            self.assertRegex(tests, rf"alertname: {name}\b", f"{name} is never tried")
        for word in ("summary:", "action:", "severity:"):
            self.assertEqual(ALERTS.read_text().count(word), len(names), word)


class Commands(unittest.TestCase):
    """Flags and variables against the binary and its sources."""

    def test_every_flag_is_one_of_its_command(self):
        helps = {name: said(name, "--help") for name in ("serve", "sidecar", "check", "probe")}
        lines = []
        for file in ("systemd/loopbreaker.service", "systemd/loopbreaker-sidecar.service"):
            lines += re.findall(r"^Exec\w+=\S*/loopbreaker (\w+)(.*)$", read(file), re.MULTILINE)
        for file in ("compose.yaml", "helm/loopbreaker/templates/deployment.yaml", "Dockerfile"):
            found = re.findall(r"(?:command|args|CMD):? \[\"?(serve|sidecar)\b(.*?)\]", read(file))
            self.assertTrue(found, file)
            lines += found
        self.assertGreater(len(lines), 6)
        for command, rest in lines:
            for flag in re.findall(r"--[a-z-]+", rest):
                self.assertIn(flag, helps[command], f"{command} {flag}")

    def test_every_variable_is_read_by_the_code(self):
        sources = "".join(path.read_text() for path in ROOT.glob("crates/*/src/**/*.rs"))
        known = r"\b((?:LOOP|LOOPBREAKER|OTEL)_[A-Z_]+|UDS_PATH|REDIS_URL|METRICS_LISTEN|ORT_DYLIB_PATH)\b"
        seen = set()
        for path in [*DEPLOY.rglob("*"), *ROOT.glob("docs/*.md")]:
            if path.is_file():
                seen |= {(name, path.name) for name in re.findall(known, path.read_text())}
        self.assertGreater(len(seen), 8)
        for name, where in seen:
            with self.subTest(variable=name, where=where):
                # clap names variables as `env = "…"`, everything else asks for them by name.
                self.assertTrue(f'"{name}"' in sources or name.endswith("_"), f"{name} in {where}")

    def test_ports_are_the_same_everywhere(self):
        for file in ("Dockerfile", "compose.yaml", "helm/loopbreaker/templates/deployment.yaml"):
            with self.subTest(file=file):
                self.assertIn("4141", read(file))
                self.assertIn("4142", read(file))


class Configs(unittest.TestCase):
    def test_every_config_is_sound(self):
        files = list(DEPLOY.glob("config/*.yaml"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            code, words = check(file.read_text())
            self.assertEqual(code, 0, f"{file}\n{words}")

    def test_the_config_inside_of_compose_is_sound(self):
        compose = read("compose.yaml")
        content = re.search(r"^    content: \|\n((?:      .*\n)+)", compose, re.MULTILINE).group(1)
        values = {"POSTGRES_PASSWORD": "secret", "OPERATOR_TOKEN_SHA256": "ab" * 32}
        text = re.sub(r"\$\{(\w+)[^}]*\}", lambda found: values[found.group(1)], content)
        self.assertNotIn("$", text)
        code, words = check(re.sub(r"^      ", "", text, flags=re.MULTILINE))
        self.assertEqual(code, 0, words)
        self.assertIn("postgres://***@postgres:5432/loopbreaker", words)

    def test_gateway_and_sidecar_of_compose_share_a_socket_and_a_user(self):
        compose = read("compose.yaml")
        sockets = re.findall(r"(?:UDS_PATH|LOOP_EMBEDDING_SIDECAR_UDS): (\S+)", compose)
        self.assertEqual(len(sockets), 2)
        self.assertEqual(sockets[0], sockets[1])
        self.assertEqual(compose.count("- embedding-socket:/run/loopbreaker"), 2)
        self.assertNotRegex(compose, r"^ +user:")

    def test_a_config_that_is_swapped_as_kubernetes_does_is_taken_up(self):
        """Files of a volume are links through `..data`, which is replaced as a whole."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)

            def put(version, policies):
                place = folder / f"..{version}"
                (place / "policies").mkdir(parents=True)
                (place / "loopbreaker.yaml").write_text("policy_files: [policies/policies.yaml]\nlog: off\n")
                listed = "".join(f"- {{ id: p{index}, spec: {{}} }}\n" for index in range(policies))
                (place / "policies" / "policies.yaml").write_text(listed)
                link = folder / "..fresh"
                link.symlink_to(place.name)
                link.rename(folder / "..data")

            put("first", 1)
            (folder / "loopbreaker.yaml").symlink_to("..data/loopbreaker.yaml")
            (folder / "policies").symlink_to("..data/policies")
            gateway = Mounted(folder)
            try:
                self.assertEqual(gateway.ready()["parts"]["policies"], 1)
                put("second", 3)
                deadline = time.monotonic() + 20
                while gateway.ready()["parts"]["policies"] != 3:
                    self.assertLess(time.monotonic(), deadline, "the new policies were never read")
                    time.sleep(0.1)
            finally:
                gateway.stop()


class Mounted(Gateway):
    """A gateway with a config in a folder that somebody else fills."""

    def __init__(self, folder):
        from processes import LOOPBREAKER, Process

        config = str(folder / "loopbreaker.yaml")
        command = [LOOPBREAKER, "serve", "--listen", "127.0.0.1:0", "--config", config]
        Process.__init__(self, [*command, "--data-dir", str(folder / "data")], folder / "log")


class Image(unittest.TestCase):
    """The Dockerfile against the files that it copies. Building it needs a network and an engine."""

    def setUp(self):
        self.text = re.sub(r"\\\n", " ", read("Dockerfile"))
        ignored = (ROOT / ".dockerignore").read_text().splitlines()
        rules = [line for line in ignored if line and not line.startswith("#")]
        self.let_through = [rule[1:] for rule in rules if rule.startswith("!")]
        self.left_out = [rule for rule in rules if not rule.startswith("!") and rule != "*"]

    def copied(self):
        for line in re.findall(r"^COPY (?!--from)(.*)$", self.text, re.MULTILINE):
            yield from line.split()[:-1]

    def test_everything_that_is_copied_exists_and_reaches_the_builder(self):
        copied = list(self.copied())
        self.assertGreater(len(copied), 5)
        for source in copied:
            with self.subTest(source=source):
                self.assertTrue((ROOT / source).exists())
                parents = {source, *(str(parent) for parent in Path(source).parents)}
                self.assertTrue(parents & set(self.let_through), "`.dockerignore` leaves it out")
                self.assertFalse([rule for rule in self.left_out if fnmatch.fnmatch(source, rule)])

    def test_every_file_that_the_binary_includes_is_copied(self):
        copied = [ROOT / source for source in self.copied()]
        for path in ROOT.glob("crates/*/src/**/*.rs"):
            code = path.read_text().split("#[cfg(test)]")[0]
            for name in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', code):
                file = (path.parent / name).resolve()
                with self.subTest(path=path.name, file=name):
                    self.assertTrue(file.is_file())
                    self.assertTrue([source for source in copied if file.is_relative_to(source)])
                    self.assertFalse([rule for rule in self.left_out if file.match(rule + "/**") or file.match(rule)])

    def test_it_runs_as_nobody_and_without_a_shell(self):
        last = self.text.split("\nFROM ")[-1]
        self.assertIn("distroless", last)
        self.assertRegex(last, r"USER 65532:65532")
        self.assertNotIn("\nRUN ", last)


if __name__ == "__main__":
    unittest.main()
