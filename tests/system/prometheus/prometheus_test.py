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

    def test_metrics_of_ranks_follow_the_conventions_and_count_what_the_ranks_call(self) -> None:
        ports, texts = self.folder / "ports", self.folder / "ranks.prom"

        def calls(collective: str, size: str) -> subprocess.Popen:
            program = str(self.build / "client/cli/tributary")
            run = subprocess.Popen([program, "run", "--ranks", "2", "--aggregators", "1", "--", program, "perf", collective, "-b", size, "-e", size, "-n", "100000000", "-w", "0", "-c", "0"],
                                   env=self.environment(TRIBUTARY_STATUS_DIR=str(ports), TRIBUTARY_LOCAL="off", TRIBUTARY_TUNING="off", TRIBUTARY_JOB="training"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(run.wait, LIMIT_SECONDS)
            self.addCleanup(run.terminate)
            return run

        def read(series: str) -> float:
            written = self.tributary("metrics", "--dir", str(ports), "--into", str(texts))
            text = texts.read_text() if written.returncode == 0 else ""
            return sum(float(value) for value in re.findall(rf"^tributary_rank_{series}.*}} (\S+)$", text, re.MULTILINE))

        reduces = calls("all_reduce", "256K")
        self.wait_until(lambda: read('operation_seconds_count{job_name="training",rank="1",collective="all_reduce",up_to="1048576"') >= 10, "the ranks count nothing")
        self.assertEqual(self.promtool("check", "metrics", text=texts.read_text()), "")
        reduces.terminate()
        reduces.wait(timeout=LIMIT_SECONDS)
        calls("broadcast", "4K")
        self.wait_until(lambda: read('operation_seconds_count{job_name="training",rank="0",collective="broadcast",up_to="4096"') >= 10, "the ranks count nothing")
        self.assertEqual(read("info"), 2)
        self.assertGreaterEqual(read("calls_total"), 10)
        self.assertEqual(read("failures_total"), 0)
        self.assertEqual(self.promtool("check", "metrics", text=texts.read_text()), "")
        self.assertEqual(self.tributary("metrics", "--dir", str(ports), "--job", "other").stdout.count("{"), 0)

    def test_rules_are_well_formed_and_fire_as_their_test_says(self) -> None:
        self.assertEqual(self.promtool("check", "rules", *RULES), "")
        self.assertEqual(self.promtool("check", "config", "prometheus.yml"), "")
        self.assertEqual(self.promtool("test", "rules", "rules-test.yml"), "")

    def test_rules_name_metrics_that_the_daemons_have(self) -> None:
        known = set(re.findall(r"^# TYPE (\w+) ", "".join(self.pages().values()), re.MULTILINE))
        documented = (self.root / "docs/operations/metrics.md").read_text()
        known |= {f"tributary_aggregator_{name}" for name in re.findall(r"^\| `(dpdk_\w+)`", documented, re.MULTILINE)}  # these aggregators have no device
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
