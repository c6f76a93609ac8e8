"""Starts Tributary's manager and aggregators at a place, for one tree of a given shape, or for a given number of
aggregators at one switch.

one level:        root                 two levels:        root
                /  ..  \\                                /      \\
            worker-0 .. n-1                         leaf-0      leaf-1
                                                   /  ..  \\    /  ..  \\
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import processes
from places import Place, worker

START_SECONDS = 30.0
# With these rates the planner must find that every switch reduces the traffic from below: an uplink carries the traffic
# of one rank, and an aggregator's own link is never the bound.
_RANK_RATE, _AGGREGATOR_RATE = "100Gbit/s", "200Tbit/s"


class ServiceError(Exception):
    """The service did not start; the text says why."""


def hosts_of(levels: int) -> list[str]:
    """The root's host is first; the manager also runs there."""
    return [f"tree{levels}-root", *(f"tree{levels}-leaf-{leaf}" for leaf in range(2 if levels == 2 else 0))]


def equal_hosts(aggregators: int) -> list[str]:
    """The manager runs on the first host."""
    return [f"equal{aggregators}-{index}" for index in range(aggregators)]


def equal_topology(ranks: int, aggregators: int, bits_per_second: float) -> str:
    """Returns YAML for the manager: all hosts at one switch, with links of one rate."""
    hosts = [worker(rank) for rank in range(ranks)] + equal_hosts(aggregators)
    lines = ["fabric: fat-tree", "switches:", "  - {name: switch, level: 1}"]
    lines += ["hosts:", *(f"  - {it}" for it in hosts), "links:"]
    lines += [f"  - {{from: {it}, to: switch, rate: {bits_per_second / 1e6:.0f}Mbit/s}}" for it in hosts]
    return "\n".join(lines) + "\n"


def topology(ranks: int, levels: int, bits_per_second: float | None = None) -> str:
    """Returns YAML for the manager. From the rate of the ranks' links the manager computes how many bytes must be in
    flight."""
    rank_rate = f"{bits_per_second / 1e6:.0f}Mbit/s" if bits_per_second else _RANK_RATE
    root, *leaves = hosts_of(levels)
    at_rank = [f"switch-{leaf}" for leaf in range(len(leaves))] or ["switch-root"]
    switches = [f"{{name: switch-root, level: {levels}}}"] + [f"{{name: {it}, level: 1}}" for it in at_rank if leaves]
    hosts = [worker(rank) for rank in range(ranks)] + [root, *leaves]
    links = [(worker(rank), at_rank[rank * len(at_rank) // ranks], rank_rate) for rank in range(ranks)]
    links += [(root, "switch-root", _AGGREGATOR_RATE)]
    links += [(leaf, at, _AGGREGATOR_RATE) for leaf, at in zip(leaves, at_rank, strict=False)]
    links += [(at, "switch-root", _RANK_RATE) for at in at_rank if leaves]
    lines = ["fabric: fat-tree", "switches:", *(f"  - {it}" for it in switches)]
    lines += ["hosts:", *(f"  - {it}" for it in hosts), "links:"]
    lines += [f"  - {{from: {low}, to: {high}, rate: {rate}}}" for low, high, rate in links]
    return "\n".join(lines) + "\n"


class Service:
    def __init__(
        self, place: Place, hosts: list[str], topology_text: str, build: Path, folder: Path,
        environment: dict[str, str], aggregator_settings: list[str], manager_settings: list[str],
    ) -> None:  # fmt: skip
        self._place, self._build, self._folder, self._environment = place, build, folder, environment
        self._hosts = hosts
        self._aggregator_settings, self._manager_settings = aggregator_settings, manager_settings
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.url = ""
        if topology_text:
            (folder / "topology.yaml").write_text(topology_text)
            self._manager_settings = [f"topology: {folder}/topology.yaml", *manager_settings]

    def start(self) -> None:
        self._start_manager()
        for host in self._hosts:
            settings = [
                f"name: {host}",
                f"host_id: {host}",
                f"manager: {self.url}",
                f"token_file: {self._folder}/manager/aggregator.token",
                f"listen: {self._place.address(host)}:0",
                f"http_listen: {self._place.address(host)}:0",
                "workers: 1",
                "memory: 1GiB",
                *self._aggregator_settings,
            ]
            (self._folder / f"{host}.yaml").write_text("\n".join(settings) + "\n")
            self._spawn(host, host, "aggregator/tributary-aggregator")
        self._wait(lambda: self._place.call(self._hosts[0], self._active) == len(self._hosts), "its aggregators")

    def _start_manager(self) -> None:
        address, ready = self._place.address(self._hosts[0]), self._folder / "manager-ready"
        settings = [
            f"listen: {address}:0",
            # On one host nothing needs it, and older builds, which --beside compares, do not know it.
            *(["allow_plain_http: true"] if self._place.network else []),
            f"state_directory: {self._folder}/manager",
            f"ready_file: {ready}",
            *self._manager_settings,
        ]
        (self._folder / "manager.yaml").write_text("\n".join(settings) + "\n")
        self._spawn("manager", self._hosts[0], "tree-manager/tributary-manager")
        self._wait(ready.exists, "the manager")
        self.url = f"http://{json.loads(ready.read_text())['listen']}"

    def _spawn(self, name: str, host: str, program: str) -> None:
        path = self._build / program
        if not os.access(path, os.X_OK):
            found = [it for it in self._build.rglob(path.name) if it.is_file() and os.access(it, os.X_OK)]
            if not found:
                raise ServiceError(f"there is no {path.name} in {self._build}: build it first")
            path = found[0]
        command = [*self._place.enter(host), str(path), "--config", f"{self._folder}/{name}.yaml"]
        self._daemons[name] = processes.spawn(command, self._environment, self._folder / f"{name}.log")

    def _active(self) -> int:
        try:
            with urllib.request.urlopen(f"{self.url}/v1/aggregators", timeout=5) as answer:
                return sum(it["state"] == "active" for it in json.load(answer)["aggregators"])
        except (urllib.error.URLError, ConnectionError):
            return 0

    def _wait(self, done, what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not done():
            for name, daemon in self._daemons.items():
                if daemon.poll() is not None:
                    raise ServiceError(f"{name} ended:\n{processes.tail(self._folder / f'{name}.log')}")
            if time.monotonic() > deadline:
                raise ServiceError(f"{what} not ready within {START_SECONDS:.0f} s")
            time.sleep(0.02)

    @property
    def job_token_file(self) -> str:
        return f"{self._folder}/manager/job.token"

    def aggregator_processes(self) -> list[int]:
        return [it.pid for name, it in self._daemons.items() if name != "manager"]

    def kill(self, host: str) -> None:
        """Kills the aggregator of this host, so that it cannot tell the manager."""
        self._daemons[host].kill()
        self._daemons[host].wait()

    def stop(self) -> None:
        """Stops the aggregators first, so that they can tell their manager that they end."""
        for name in sorted(self._daemons, key=lambda it: it == "manager"):
            self._daemons[name].terminate()
            try:
                self._daemons[name].wait(5)
            except subprocess.TimeoutExpired:
                self._daemons[name].kill()
                self._daemons[name].wait()
