#!/usr/bin/env python3
"""Kubernetes and the daemons accept the chart, the manifest and the examples of the documents.

    manifests_test.py MANAGER AGGREGATOR

Helm itself does not run: packaging/kubernetes/render.py renders the chart, and refuses templates that it does not know.
The schemas are strict, so an unknown field is an error.
"""

import contextlib
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "packaging/kubernetes"))
import render  # noqa: E402

VERSIONS = ("1.25.0", "1.28.0", "1.31.0", "1.34.0", "1.37.0")
TOPOLOGY = "fabric: fat-tree\nswitches:\n  - {name: leaf, level: 1}\nhosts: [a, b]\nlinks:\n  - {from: \"a\", to: leaf, rate: 10Gbit/s}\n  - {from: \"b\", to: leaf, rate: 10Gbit/s}\n"
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything set": {
        "tokens": {"create": True, "aggregator": "a" * 32, "job": "j" * 32},
        "manager": {"topology": TOPOLOGY, "storage": {"className": "fast"}, "nodeSelector": {"disk": "ssd"}, "readsNeedToken": True,
                    "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}]},
        "aggregator": {"transport": "udp", "nodeSelector": {"dpu": "bluefield"}, "workers": 2,
                       "tolerations": [{"operator": "Exists"}]},
    },
    "no network policy": {"networkPolicy": {"enabled": False}},
}


def objects(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def of_kind(text: str, kind: str, name: str = "") -> dict[str, Any]:
    return next(document for document in objects(text) if document["kind"] == kind and document["metadata"]["name"].endswith(name))


class Schemas(unittest.TestCase):
    def check(self, text: str, name: str) -> None:
        for version in VERSIONS:
            for document in objects(text):
                with self.subTest(name, version=version, kind=document["kind"]):
                    kubernetes_validate.validate(document, version, strict=True)

    def test_an_unknown_field_is_refused(self) -> None:
        document = of_kind(render.render_chart(), "DaemonSet")
        document["spec"]["template"]["spec"]["hostNetworks"] = True
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(document, VERSIONS[0], strict=True)

    def test_the_chart_with_all_settings(self) -> None:
        for name, values in SETTINGS.items():
            self.check(render.render_chart(values=values), name)

    def test_the_manifest_is_the_chart_with_its_defaults(self) -> None:
        manifest = (ROOT / "packaging/kubernetes/tributary.yaml").read_text()
        self.check(manifest, "tributary.yaml")
        self.assertTrue(manifest.endswith("---\n" + render.render_chart()), "run: packaging/kubernetes/render.py, and put its output into tributary.yaml")

    def test_the_examples_of_the_documents(self) -> None:
        blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/operations/kubernetes.md").read_text(), re.MULTILINE | re.DOTALL)
        manifests = [block for block in blocks if "apiVersion:" in block]
        self.assertTrue(manifests)
        for block in manifests:
            self.check(block, "docs/operations/kubernetes.md")
        for block in set(blocks) - set(manifests):
            self.check(render.render_chart(values=yaml.safe_load(block)), "values of docs/operations/kubernetes.md")


class Security(unittest.TestCase):
    def test_no_container_has_rights(self) -> None:
        for kind in ("StatefulSet", "DaemonSet"):
            pod = of_kind(render.render_chart(), kind)["spec"]["template"]["spec"]
            self.assertFalse(pod["automountServiceAccountToken"])
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            for container in pod["containers"]:
                context = container["securityContext"]
                self.assertEqual((context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"], context["capabilities"]),
                                 (False, True, {"drop": ["ALL"]}))

    def test_an_aggregator_sees_its_own_token_alone(self) -> None:
        pod = of_kind(render.render_chart(), "DaemonSet")["spec"]["template"]["spec"]
        secret = next(volume["secret"] for volume in pod["volumes"] if "secret" in volume)
        self.assertEqual([item["key"] for item in secret["items"]], ["aggregator.token"])

    def test_labels_of_services_and_policies_select_the_manager(self) -> None:
        text = render.render_chart()
        labels = of_kind(text, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
        for selector in (of_kind(text, "Service")["spec"]["selector"], of_kind(text, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]):
            self.assertEqual(selector, labels)


class Daemons(unittest.TestCase):
    manager = aggregator = ""

    def accepts(self, program: str, config: str, *arguments: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("aggregator.token", "job.token"):
                (Path(folder) / name).write_text("t" * 32)
                (Path(folder) / name).chmod(0o440)
            (Path(folder) / "topology.yaml").write_text(TOPOLOGY)
            text = config.replace("/etc/tributary-tokens", folder).replace("/etc/tributary", folder).replace("/var/lib/tributary-aggregator", folder)
            (Path(folder) / "config.yaml").write_text(text)
            # A daemon of this machine may use the same ports, so the check has a network of its own.
            alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
            ended = subprocess.run([*alone, program, "--config", f"{folder}/config.yaml", "--check", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_the_daemons_take_their_configuration(self) -> None:
        for name, values in SETTINGS.items():
            with self.subTest(name):
                text = render.render_chart(values=values)
                self.accepts(self.manager, of_kind(text, "ConfigMap", "manager")["data"]["manager.yaml"])
                self.accepts(self.aggregator, of_kind(text, "ConfigMap", "aggregator")["data"]["aggregator.yaml"],
                             "--name", "node", "--host-id", "node", "--listen", "127.0.0.1:7471")

    def test_the_topology_arrives_as_it_was_given(self) -> None:
        config = of_kind(render.render_chart(values=SETTINGS["everything set"]), "ConfigMap", "manager")
        self.assertEqual(yaml.safe_load(config["data"]["topology.yaml"]), yaml.safe_load(TOPOLOGY))


class Renderer(unittest.TestCase):
    def render(self, text: str) -> str:
        return render.render(text, {"Values": {"a": "x", "no": False, "list": [{"k": 1}], "empty": {}}})

    def test_what_helm_would_write(self) -> None:
        self.assertEqual(self.render("k: {{ .Values.a | quote }}\n"), 'k: "x"\n')
        self.assertEqual(self.render("a\n{{- if .Values.no }}\nb\n{{- else }}\nc\n{{- end }}\nd\n"), "a\nc\nd\n")
        self.assertEqual(self.render("l:\n  {{- toYaml .Values.list | nindent 2 }}\n"), "l:\n  - k: 1\n")
        self.assertEqual(self.render("l:\n  {{- toYaml .Values.empty | nindent 2 }}\n"), "l:\n  {}\n")

    def test_what_it_does_not_know_is_an_error(self) -> None:
        for text in ("{{ .Values.b }}", "{{ range .Values.list }}", "{{ include \"x\" . }}", "{{ .Values.a | upper }}", "{{ if .Values.a }}"):
            with self.subTest(text), self.assertRaises(render.TemplateError):
                self.render(text)

    def test_a_secret_without_its_texts_is_an_error(self) -> None:
        with self.assertRaisesRegex(render.TemplateError, "tokens.aggregator is needed"):
            render.render_chart(values={"tokens": {"create": True}})
        with contextlib.redirect_stderr(io.StringIO()) as said, tempfile.NamedTemporaryFile("w", suffix=".yaml") as values:
            values.write("tokens: {create: true}\n")
            values.flush()
            sys.argv = ["render.py", "--values", values.name]
            self.assertEqual(render.main(), 1)
        self.assertIn("tokens.aggregator is needed", said.getvalue())


if __name__ == "__main__":
    Daemons.aggregator = sys.argv.pop(2)
    Daemons.manager = sys.argv.pop(1)
    unittest.main(verbosity=1)
