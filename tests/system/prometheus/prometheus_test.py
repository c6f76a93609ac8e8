#!/usr/bin/env python3
"""Prometheus' own tool accepts the daemons' metrics, and the rules of packaging/prometheus; the rules fire as their test says.

    prometheus_test.py REPOSITORY BUILD
"""

import re
import shutil
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

RULES = ("tributary-alerts.yml", "tributary-recording.yml")


class Prometheus(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.rules = self.root / "packaging/prometheus"

    def pages(self) -> dict[str, str]:
        """Starts a manager, and an aggregator over TCP and one over UDP. Returns their metrics."""
        manager = self.start("manager", "tree-manager/tributary-manager", f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\n")
        url = f"http://127.0.0.1:{manager['port']}"
        pages = {"manager": self.read(url)}
        for transport in ("tcp", "udp"):
            name = f"leaf-{transport}"
            aggregator = self.start(name, "aggregator/tributary-aggregator", f"name: {name}\nmanager: {url}\ntoken_file: {self.folder}/state/aggregator.token\n"
                                    f"listen: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nworkers: 2\nstate_file: {self.folder}/{name}.key\ntransport: {transport}\n")
            pages[name] = self.read(f"http://127.0.0.1:{aggregator['http']['port']}")
        return pages

    def read(self, url: str) -> str:
        for _ in range(2):  # the manager has counts by route only after its first request
            with urllib.request.urlopen(url + "/metrics", timeout=LIMIT_SECONDS) as page:
                text = page.read().decode()
        return text

    def promtool(self, *arguments: str, text: str = "") -> str:
        """Returns what the tool complains about."""
        ended = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, cwd=self.rules, timeout=LIMIT_SECONDS, check=False)
        return "" if ended.returncode == 0 else ended.stdout + ended.stderr

    def test_metrics_follow_the_conventions(self) -> None:
        for daemon, page in self.pages().items():
            self.assertEqual(self.promtool("check", "metrics", text=page), "", daemon)

    def test_rules_are_well_formed_and_fire_as_their_test_says(self) -> None:
        self.assertEqual(self.promtool("check", "rules", *RULES), "")
        self.assertEqual(self.promtool("check", "config", "prometheus.yml"), "")
        self.assertEqual(self.promtool("test", "rules", "rules-test.yml"), "")

    def test_rules_name_metrics_that_the_daemons_have(self) -> None:
        known = set(re.findall(r"^# TYPE (\w+) ", "".join(self.pages().values()), re.MULTILINE))
        for file in RULES:
            text = re.sub(r"- record: .*", "", (self.rules / file).read_text())
            named = {name.removesuffix("_bucket") for name in re.findall(r"\btributary_(?:manager|aggregator)_\w+", text)}
            self.assertTrue(named)
            self.assertEqual(named - known, set(), file)


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("promtool is missing: Debian's package prometheus has it")
        sys.exit(77)
    Prometheus.root, Prometheus.build = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
