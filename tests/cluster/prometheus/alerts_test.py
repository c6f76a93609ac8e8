#!/usr/bin/env python3
"""The rules of packaging/prometheus fire in a real Prometheus and come to a real alertmanager, when a rank stops, an aggregator is killed, and so on. Each panel of
the dashboards has data there.

    alerts_test.py REPOSITORY BUILD
"""

import json
import os
import signal
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path

from monitoring import LIMIT_SECONDS, Monitoring, missing_program

# Writes the manager's URL, and its process to a file of the rank, and runs without end.
RANK = "echo \"$TRIBUTARY_MANAGER\" > {folder}/url.new; mv {folder}/url.new {folder}/url; echo $$ > {folder}/rank-$RANK; exec {command}"

def children_of(pid: int) -> list[tuple[int, str]]:
    """Returns the processes below this one, with their command lines."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            child = int(stat.parent.name)
            if parent == pid:
                found += [(child, (stat.parent / "cmdline").read_text().replace("\0", " ")), *children_of(child)]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
    return found


class Alerts(Monitoring):
    def get(self, url: str) -> dict:
        with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)

    def start_job(self) -> None:
        """`tributary run` starts a manager, three aggregators in two levels, and four ranks that reduce for ever."""
        command = RANK.format(folder=self.folder, command=f"{self.build}/client/cli/tributary perf all_reduce -b 256K -e 256K -n 100000000 -w 1 -c 0")
        environment = self.environment(TRIBUTARY_STATUS_DIR=str(self.folder / "ports"), TRIBUTARY_LOCAL="off", TRIBUTARY_TUNING="off", TRIBUTARY_JOB="training")
        self.run_process = subprocess.Popen(
            [self.build / "client/cli/tributary", "run", "--ranks", "4", "--aggregators", "3", "--levels", "2", "--", "sh", "-c", command],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.run_process.wait, LIMIT_SECONDS)
        self.addCleanup(self.run_process.terminate)
        self.wait_until(lambda: (self.folder / "url").exists(), "no rank starts")
        self.url = (self.folder / "url").read_text().strip()
        self.wait_until(lambda: [group["path"] for group in self.get(f"{self.url}/v1/groups")["groups"]] == ["in-network"], "the job has no trees")
        self.aggregators = self.get(f"{self.url}/v1/aggregators")["aggregators"]

    def start_crowded_cluster(self) -> tuple[str, str]:
        """Starts a manager, and an aggregator with too little memory for any group. Returns the addresses of their pages."""
        manager = self.start("manager", "tree-manager/tributary-manager", f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\nretry_after: 1s\n")
        url = f"http://127.0.0.1:{manager['port']}"
        aggregator = self.start("small", "aggregator/tributary-aggregator", f"name: small\nmanager: {url}\ntoken_file: {self.folder}/state/aggregator.token\n"
                                f"listen: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nmemory: 1MiB\nworkers: 1\nstate_file: {self.folder}/small.key\n")
        return f"127.0.0.1:{manager['port']}", f"127.0.0.1:{aggregator['http']['port']}"

    def start_job_on_fallback(self, manager: str) -> None:
        command = (f"export TRIBUTARY_MANAGER=http://{manager} TRIBUTARY_TOKEN_FILE={self.folder}/state/job.token; "
                   f"exec {self.build}/client/cli/tributary perf all_reduce -b 256K -e 256K -n 100000000 -w 1 -c 0")
        job = subprocess.Popen([self.build / "client/cli/tributary", "run", "--ranks", "2", "--aggregators", "0", "--", "sh", "-c", command],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=self.environment(TRIBUTARY_LOCAL="off", TRIBUTARY_TUNING="off", TRIBUTARY_JOB="crowded", TRIBUTARY_STATUS_DIR="off"))
        self.addCleanup(job.wait, LIMIT_SECONDS)
        self.addCleanup(job.terminate)

    def write_rank_metrics(self) -> None:
        writer = subprocess.Popen([self.build / "client/cli/tributary", "metrics", "--dir", self.folder / "ports", "--into", self.texts / "tributary.prom", "--every", "1"],
                                  stderr=subprocess.DEVNULL, env=self.environment())
        self.addCleanup(writer.wait, LIMIT_SECONDS)
        self.addCleanup(writer.terminate)

    def has_data(self, expression: str) -> bool:
        return any(one["value"][1] != "NaN" for one in self.values(expression))

    def wait_for_panel(self, wanted: str, more_than: float, **labels: str) -> None:
        """Waits until the panel with this title shows a greater value, in a series with these labels."""
        expression = next(expression for _, title, expression in self.panels() if title == wanted)

        def shown() -> bool:
            return any(float(one["value"][1]) > more_than for one in self.values(expression) if labels.items() <= one["metric"].items())

        self.wait_until(shown, lambda: f"the panel {wanted!r} shows no more than {more_than}: {self.values(expression)}")

    def process_of(self, text: str) -> int:
        found = [pid for pid, command in children_of(self.run_process.pid) if text in command and "sh -c" not in command]
        self.assertEqual(len(found), 1, children_of(self.run_process.pid))
        return found[0]

    def test_alerts_fire_and_arrive(self) -> None:
        self.start_job()
        manager, small = self.start_crowded_cluster()
        self.watch(manager=[self.url.removeprefix("http://"), manager], aggregator=[*(one["http"] for one in self.aggregators), small])
        self.write_rank_metrics()
        self.wait_until(lambda: len(self.values("up == 1")) == 7, lambda: str(self.ask("targets")))
        self.wait_until(lambda: self.values("count_over_time(up[15s]) >= 12"), "Prometheus reads nothing")
        self.assertEqual(self.firing(), set())
        groups = self.ask("rules")["groups"]
        self.assertEqual([rule["name"] for group in groups for rule in group["rules"] if rule["health"] != "ok"], [])

        with self.subTest("a rank stands still"):
            rank = int((self.folder / "rank-2").read_text())
            os.kill(rank, signal.SIGSTOP)
            self.wait_for_panel("Oldest open collective", 2, job_name="training")
            self.wait_for_panel("Late children", 0)
            self.wait_for_alert("TributaryRankLate")
            os.kill(rank, signal.SIGCONT)
            self.wait_for_end("TributaryRankLate")
        with self.subTest("a job is on the fallback although memory is free"):
            self.start_job_on_fallback(manager)
            self.wait_for_alert("TributaryGroupsOnFallback")
        with self.subTest("an aggregator is killed"):
            leaf = self.process_of("aggregator-0")
            before = self.values("sum(tributary_rank_failover_pause_seconds_sum)")[0]["value"][1]
            os.kill(leaf, signal.SIGKILL)
            self.wait_for_panel("Bytes by path", 0, path="between ranks")
            self.wait_for_panel("Lost trees", 0, job_name="training")
            self.wait_for_panel("Time in pauses after lost trees", float(before), job_name="training")
            self.wait_for_alert("TributaryLanesFail")
            self.wait_for_alert("TributaryAggregatorLost")
            self.wait_for_alert("TributaryDaemonDown")
        with self.subTest("every panel has data"):
            panels = self.panels()
            self.assertGreater(len(panels), 20)
            for file, title, expression in panels:
                self.wait_until(lambda expression=expression: self.has_data(expression), f"{file}: the panel {title!r} has no data: {expression}")
        with self.subTest("no manager leads"):
            self.processes["manager"].kill()
            os.kill(self.process_of("tributary-manager"), signal.SIGKILL)
            self.wait_for_alert("TributaryNoLeader")


class Dashboards(unittest.TestCase):
    def test_files_are_those_of_their_program(self) -> None:
        python = Alerts.root / "build/grafana/bin/python"
        if not python.exists():
            self.skipTest("grafanalib is missing (scripts/setup --cluster)")
        checked = subprocess.run([python, "-B", Alerts.root / "packaging/grafana/make-dashboards", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))


if __name__ == "__main__":
    program = missing_program()
    if program:
        print(f"skipped: {program} is missing (scripts/setup --cluster)")
        sys.exit(77)
    Alerts.root, Alerts.build = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
