#!/usr/bin/env python3
"""docs/operations/ has every setting (configure.md) and every metric (metrics.md) of both daemons, and no others.

    settings_test.py REPOSITORY MANAGER AGGREGATOR
"""

import json
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

LIMIT_SECONDS = 30.0


class Settings(unittest.TestCase):
    root = manager = aggregator = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def section(self, page: str, heading: str) -> str:
        text = (self.root / "docs/operations" / page).read_text()
        found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
        self.assertIsNotNone(found, heading)
        assert found is not None
        return found[1]

    def first_column(self, page: str, heading: str) -> set[str]:
        rows = re.findall(r"^\| (`[^|]*) \|", self.section(page, heading), re.MULTILINE)
        return {name for row in rows for name in re.findall(r"`(\w+)`", row)}

    def test_settings(self) -> None:
        for program, name in ((self.manager, "tributary-manager"), (self.aggregator, "tributary-aggregator")):
            printed = subprocess.run([program, "--print-config"], capture_output=True, text=True, check=True).stdout
            keys = set(re.findall(r"^(\w+):", printed, re.MULTILINE))
            self.assertGreater(len(keys), 5)
            self.assertEqual(self.first_column("configure.md", name), keys,
                             f"the settings of {name} and docs/operations/configure.md differ")

    def start(self, command: list[str], ready: Path) -> dict:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        def stop() -> None:
            process.terminate()
            process.communicate(timeout=LIMIT_SECONDS)

        self.addCleanup(stop)
        end = time.monotonic() + LIMIT_SECONDS
        while not ready.exists():
            self.assertIsNone(process.poll(), f"{command[0]} has ended")
            self.assertLess(time.monotonic(), end, f"{command[0]} does not serve")
            time.sleep(0.02)  # how often to look; no result depends on it
        return json.loads(ready.read_text())

    @staticmethod
    def get(url: str) -> str:
        with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as answer:
            return answer.read().decode()

    def families(self, url: str, prefix: str) -> set[str]:
        return set(re.findall(rf"^# TYPE {prefix}(\w+) ", self.get(url), re.MULTILINE))

    @staticmethod
    def port_of(ready: dict, what: str) -> int:
        one = ready.get(what, ready)
        return int(one["port"] if isinstance(one, dict) else str(one).rsplit(":", 1)[-1])

    def test_metrics(self) -> None:
        state = self.folder / "state"
        ready = self.start([str(self.manager), "--listen", "127.0.0.1:0", "--state-dir", str(state), "--ready-file", str(self.folder / "manager"),
                            "--log-level", "error"], self.folder / "manager")
        manager = f"http://127.0.0.1:{self.port_of(ready, 'http')}"
        ready = self.start([str(self.aggregator), "--name", "a", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--manager", manager,
                            "--token-file", str(state / "aggregator.token"), "--workers", "1", "--ready-file", str(self.folder / "aggregator"),
                            "--log-level", "error"], self.folder / "aggregator")
        aggregator = f"http://127.0.0.1:{self.port_of(ready, 'http')}"
        self.get(manager + "/v1/version")
        end = time.monotonic() + LIMIT_SECONDS
        while "tributary_aggregator_manager_registered 1" not in self.get(aggregator + "/metrics"):
            self.assertLess(time.monotonic(), end, "the aggregator does not register")
            time.sleep(0.02)
        self.assertEqual(self.first_column("metrics.md", "Manager"), self.families(manager + "/metrics", "tributary_manager_"))
        # A unit test compares the table with the metrics of all transports; this aggregator uses TCP.
        over_tcp = {name for name in self.first_column("metrics.md", "Aggregator") if not name.startswith(("udp_", "rdma_", "dpdk_"))}
        self.assertEqual(over_tcp, self.families(aggregator + "/metrics", "tributary_aggregator_"))


if __name__ == "__main__":
    Settings.root = Path(sys.argv[1]).resolve()
    Settings.manager, Settings.aggregator = Path(sys.argv[2]), Path(sys.argv[3])
    del sys.argv[1:]
    unittest.main(verbosity=1)
