"""A Tributary service on this machine, as real processes: a manager, two leaf aggregators and a root.

              spine-agg                    The topology is config/topology-demo.yaml: two leaf switches, with
             /         \\                    two hosts of ranks and an aggregator at each, and the root
     leaf-agg-1       leaf-agg-2           at the spine
      /     \\          /     \\
  rank 0   rank 1   rank 2   rank 3

Every aggregator takes two children, so the tree needs all three aggregators: without one of them the ranks reduce
between themselves.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

RANKS = 4
START_SECONDS = 20.0
STOP_SECONDS = 5.0
REPORT_SECONDS = 10.0
HOST_OF = {"leaf-agg-1": "host-leaf-1", "leaf-agg-2": "host-leaf-2", "spine-agg": "host-spine"}
AGGREGATORS = tuple(HOST_OF)
TOPOLOGY = Path(__file__).resolve().parent.parent / "config/topology-demo.yaml"

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Runs in each child process before its program: when this process ends for any reason, the child ends, too."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class ClusterError(Exception):
    """The service did not start; the text says what happened."""


class Service:
    """One daemon and its log."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name, self.command, self.log = name, command, log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        return self.process.pid

    def check_alive(self) -> None:
        if self.process and self.process.poll() is not None:
            raise ClusterError(f"{self.name} ended with exit code {self.process.returncode}:\n{self.log_tail()}")

    def kill(self) -> None:
        """Kills the daemon by SIGKILL, so that it cannot announce its end."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def ask_to_stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()

    def reap(self, deadline: float) -> None:
        if not self.process:
            return
        try:
            self.process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            self.kill()

    def log_tail(self, lines: int = 15) -> str:
        return (
            "\n".join(f"   | {line}" for line in self.log.read_text(errors="replace").splitlines()[-lines:])
            if self.log.exists()
            else ""
        )


class Cluster:
    """The manager and the aggregators of the demo. Their files lie in `folder`, their programs in the build directory."""

    def __init__(self, build: Path, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.manager_facts: dict[str, str] = {}
        self._build = build
        self.services: dict[str, Service] = {}

    def _program(self, name: str) -> str:
        for candidate in (*self._build.glob(name), *self._build.glob(f"*/{name}"), *self._build.glob(f"*/*/{name}")):
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate)
        raise ClusterError(f"there is no {name} in {self._build}; build it with: cmake --build {self._build}")

    def start(self) -> None:
        self._start_manager()
        for name in AGGREGATORS:
            config = self.folder / f"{name}.yaml"
            config.write_text(self._aggregator_config(name))
            self.services[name] = Service(
                name, [self._program("tributary-aggregator"), "--config", str(config)], self.folder / f"{name}.log"
            )
            self.services[name].start()
        self.wait_for_aggregators()

    def _start_manager(self) -> None:
        ready, config = self.folder / "manager-ready", self.folder / "manager.yaml"
        config.write_text(f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/manager\ntopology: {TOPOLOGY}\n")
        manager = Service(
            "manager",
            [self._program("tributary-manager"), "--config", str(config), "--ready-file", str(ready)],
            self.folder / "manager.log",
        )
        self.services["manager"] = manager
        manager.start()
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            manager.check_alive()
            if time.monotonic() > deadline:
                raise ClusterError(f"the manager was not ready within {START_SECONDS:.0f} s:\n{manager.log_tail()}")
            time.sleep(0.02)
        self.manager_facts = json.loads(ready.read_text())
        self.url = f"http://{self.manager_facts['listen']}"

    def _aggregator_config(self, name: str) -> str:
        return (
            f"name: {name}\n"
            f"host_id: {HOST_OF[name]}\n"
            f"manager: {self.url}\n"
            f"token_file: {self.manager_facts['aggregator_token_file']}\n"
            "listen: 127.0.0.1:0\n"
            "http_listen: 127.0.0.1:0\n"
            "workers: 1\n"
            "memory: 64MiB\n"
            "children_max: 2\n"
        )

    def wait_for_aggregators(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while (active := {name for name, it in self.aggregators().items() if it["state"] == "active"}) != set(
            AGGREGATORS
        ):
            for service in self.services.values():
                service.check_alive()
            if time.monotonic() > deadline:
                logs = "\n".join(service.log_tail() for service in self.services.values())
                raise ClusterError(
                    f"after {START_SECONDS:.0f} s the manager knows {sorted(active)} of {sorted(AGGREGATORS)}:\n{logs}"
                )
            time.sleep(0.05)

    def aggregators(self) -> dict[str, dict]:
        """Returns the manager's data about each aggregator, by name."""
        try:
            with urllib.request.urlopen(f"{self.url}/v1/aggregators", timeout=5) as answer:
                return {entry["name"]: entry for entry in json.load(answer)["aggregators"]}
        except (urllib.error.URLError, ConnectionError):
            return {}

    def contribution_bytes(self, name: str, enough: int) -> int:
        """Returns an aggregator's count, and waits for `enough`, because the manager gets counts only every few seconds."""
        deadline = time.monotonic() + REPORT_SECONDS
        while (counted := self.aggregators()[name]["load"]["contribution_bytes_total"]) < enough:
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        return counted

    def environment(self, rank: int) -> dict[str, str]:
        """Returns the variables by which a rank finds the service and names its host."""
        return {
            "TRIBUTARY_MANAGER": self.url,
            "TRIBUTARY_TOKEN_FILE": self.manager_facts["job_token_file"],
            "TRIBUTARY_HOST_ID": f"node-{rank + 1}",
            "TRIBUTARY_JOB": "demo",
            "TRIBUTARY_TUNING": "off",  # the demo is about trees, so every operation uses them
        }

    def stop(self) -> None:
        """Asks the daemons to end, aggregators first; kills those that do not end."""
        deadline = time.monotonic() + STOP_SECONDS
        for name in (*AGGREGATORS, "manager"):
            if service := self.services.get(name):
                service.ask_to_stop()
                service.reap(deadline)
