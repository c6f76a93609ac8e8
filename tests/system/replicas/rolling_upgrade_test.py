#!/usr/bin/env python3
"""Two versions of Tributary side by side: managers and aggregators are replaced one after another, there and back.

    TRIBUTARY_OLDER_BUILD=FOLDER rolling_upgrade_test.py REPOSITORY BUILD

FOLDER is the build folder of an older version, with the manager, the aggregator, the command and the library; BUILD is
today's. scripts/upgrade-check makes the older build, and runs this test. Etcd is real: three members on loopback. The
job is real, too: two ranks that check every sum.
"""

import json
import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from free_ports import free_port
from group_maker import Client
from managers_over_etcd import LIMIT_SECONDS, ManagersOverEtcd, get, has_etcd

MANAGER, AGGREGATOR = "tree-manager/tributary-manager", "aggregator/tributary-aggregator"
CLIENTS = 2
ROUNDS = 10  # of each client after each step
NICE = 10  # of the job's ranks, which compute without a pause


class RollingUpgrade(ManagersOverEtcd):
    older = Path()  # the older version's build folder

    def setUp(self) -> None:
        self.builds: dict[str, Path] = {}  # by the process's name; left out: first_managers
        self.fixed_ports: dict[str, int] = {}
        self.first_managers = self.build if "aggregators" in self._testMethodName else self.older
        super().setUp()
        self.urls = ",".join(f"http://127.0.0.1:{port}" for port in self.ports.values())
        self.token = (self.folder / "state0/job.token").read_text().strip()
        self.ranks: list[subprocess.Popen] = []

    def run_manager(self, i: int) -> int:
        """Starts a manager at the address that it has had before."""
        name = f"m{i}"
        port = self.fixed_ports.setdefault(name, free_port())
        self.start(name, str(self.builds.get(name, self.first_managers) / MANAGER),
                   f"listen: 127.0.0.1:{port}\nstate_directory: {self.folder}/state{i}\nstore: {self.store}\nleader_lease: 8s\naggregator_lease: 10s\n"
                   "group_lease: 60s\nlog_level: info\n")
        return port

    def start_aggregator(self, name: str, build: Path) -> None:
        self.start(name, str(build / AGGREGATOR),
                   f"name: {name}\nmanager: {self.urls}\ntoken_file: {self.folder}/state0/aggregator.token\nstate_file: {self.folder}/{name}.key\nlisten: 127.0.0.1:0\n"
                   "http_listen: 127.0.0.1:0\nworkers: 1\nmemory: 512GiB\nshared_memory: off\n")
        self.wait_until(lambda: self.state_of(name) == "active", lambda: f"{name} is not active\n{self.logs()}")

    def state_of(self, name: str) -> str:
        for port in self.ports.values():
            status, _, body = get(port, f"/v1/aggregators/{name}")
            if status == 200:
                return json.loads(body)["state"]
        return ""

    def stop(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGTERM)
        self.assertEqual(self.processes[name].wait(timeout=LIMIT_SECONDS), 0, f"{name} ends with an error\n{self.logs()}")

    def replace_managers(self, build: Path) -> None:
        """Does what the page's "Upgrade" says, the leader last, and tries every manager after each step."""
        self.wait_until(self.leader, lambda: f"no manager leads\n{self.logs()}")
        leader = self.leader()
        for name in sorted(self.ports, key=lambda name: name == leader):
            before = self.made()
            self.stop(name)
            self.builds[name] = build
            self.run_manager(int(name[1:]))
            for port in self.ports.values():
                self.wait_until(lambda port=port: self.makes_group(port), lambda name=name, port=port: f"{port} makes no group after {name} was replaced\n{self.logs()}")
            self.wait_until(lambda before=before: self.made() >= before + ROUNDS, lambda: f"the clients make no more groups\n{self.logs()}")
            self.expect_no_wrong_answer()
            self.expect_running_job()

    def makes_group(self, port: int) -> bool:
        """Makes a group at this manager, and deletes it."""
        client = Client("one", lambda: [port], self.token)
        status, answer = client.once(port, "POST", "/v1/groups", {"job": "one", "ranks": ["x", "y"]})
        return status == 200 and client.once(port, "DELETE", f"/v1/groups/{answer['group']}", None)[0] == 200

    def start_clients(self) -> None:
        self.clients = [Client(f"client{i}", lambda: list(self.ports.values()), self.token) for i in range(CLIENTS)]
        for client in self.clients:
            client.start()
            self.addCleanup(client.stop)

    def made(self) -> int:
        return min(client.counts["made"] for client in self.clients)

    def expect_no_wrong_answer(self) -> None:
        for client in self.clients:
            self.assertIsNone(client.wrong, self.logs())

    def expect_all_groups(self) -> None:
        """Stops the clients, and asks every manager for the groups."""
        for client in self.clients:
            client.stop()
        self.expect_no_wrong_answer()
        for name, port in self.ports.items():
            status, _, body = get(port, "/v1/groups")
            self.assertEqual(status, 200, name)
            there = {group["group"]: group["epoch"] for group in json.loads(body)["groups"]}
            for client in self.clients:
                self.assertEqual({group: there.get(group) for group in client.living}, client.living, f"{name} has lost groups")
                self.assertEqual(client.deleted & there.keys(), set(), f"{name} has groups that were deleted")
        epochs = [client.epochs for client in self.clients]
        self.assertEqual(set.intersection(*epochs), set(), "an epoch was given twice")
        for client in self.clients:
            print(f"{client.name}: {dict(client.counts)}, {len(client.living)} groups left, the longest request took {client.longest_seconds:.1f} s")

    def job_environment(self, **more: str) -> dict[str, str]:
        return self.environment(TRIBUTARY_MANAGER=self.urls, TRIBUTARY_TOKEN_FILE=f"{self.folder}/state0/job.token", TRIBUTARY_LOCAL="off", TRIBUTARY_SHM="off",
                                TRIBUTARY_TUNING="off", TRIBUTARY_TIMEOUT="60", TRIBUTARY_LOG="info", MASTER_ADDR="127.0.0.1", **more)

    def start_job(self, build: Path) -> None:
        """Starts two ranks that use this build's library, and waits until they reduce in the network."""
        (self.folder / "job").mkdir()
        for rank in range(2):
            log = (self.folder / f"rank{rank}.log").open("w")
            self.addCleanup(log.close)
            self.ranks.append(subprocess.Popen([sys.executable, "-B", self.root / "tests/packages/debian/job.py", self.folder / "job", str(rank), "2"], stdout=log, stderr=log,
                                               env=self.job_environment(LD_LIBRARY_PATH=str(build / "client")), preexec_fn=lambda: os.nice(NICE)))
            self.addCleanup(self.ranks[-1].wait, LIMIT_SECONDS)
            self.addCleanup(self.ranks[-1].kill)
        self.wait_until(lambda: self.progress()[1] > 0, lambda: f"the job does not reduce in the network\n{self.job_logs()}{self.logs()}")

    def progress(self) -> list[int]:
        """Returns the job's operations, its bytes in the network, its bytes by the fallback, and its losses of trees."""
        path = self.folder / "job/progress"
        return [int(word) for word in path.read_text().split()] if path.exists() else [0, 0, 0, 0]

    def job_logs(self) -> str:
        return "".join(f"== rank {rank}\n{(self.folder / f'rank{rank}.log').read_text()}" for rank in range(len(self.ranks)))

    def expect_running_job(self) -> None:
        """Waits until the job has done more in the network."""
        before = self.progress()[1]
        self.wait_until(lambda: self.progress()[1] > before or any(rank.poll() is not None for rank in self.ranks),
                        lambda: f"the job does not go on in the network\n{self.job_logs()}{self.logs()}")
        self.assertEqual([rank.poll() for rank in self.ranks], [None, None], self.job_logs())

    def end_job(self) -> None:
        (self.folder / "job/stop").touch()
        self.assertEqual([rank.wait(timeout=LIMIT_SECONDS) for rank in self.ranks], [0, 0], self.job_logs())
        operations, in_network, fallback, losses = self.progress()
        print(f"the job: {operations} sums, {in_network} bytes in the network, {fallback} by the fallback, {losses} losses of trees")

    def run_short_jobs(self, name: str, build: Path) -> None:
        """Runs a job of two ranks of this build for each operator that all versions have. The ranks fail if a result is wrong, or if no byte goes by a tree."""
        for operator in ("sum", "prod", "min", "max", "avg"):
            self.run_short_job(f"{name}-{operator}", build, operator)

    def run_short_job(self, name: str, build: Path, operator: str) -> None:
        command = [build / "client/cli/tributary", "perf", "all_reduce", "-b", "64K", "-e", "64K", "-n", "20", "-o", operator, "--require", "in-network",
                   "--id-file", self.folder / name]
        ranks = [subprocess.Popen(command, env=self.job_environment(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank in range(2)]
        said = [rank.communicate(timeout=LIMIT_SECONDS)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], "\n".join(said) + self.logs())

    def test_managers_are_replaced_one_after_another_there_and_back(self) -> None:
        self.start_aggregator("leaf-a", self.older)
        self.start_job(self.older)
        self.start_clients()
        self.replace_managers(self.build)
        self.run_short_jobs("new-ranks", self.build)  # over the older aggregator
        self.run_short_jobs("old-ranks", self.older)
        self.replace_managers(self.older)
        self.run_short_jobs("old-ranks-again", self.older)
        self.expect_all_groups()
        self.assertEqual(self.progress()[2:], [0, 0], f"the job has lost its trees\n{self.job_logs()}")
        self.end_job()

        # Today's aggregator under the older managers.
        self.start_aggregator("leaf-b", self.build)
        self.stop("leaf-a")
        self.wait_until(lambda: self.state_of("leaf-a") == "", "leaf-a does not unregister")
        self.run_short_jobs("new-ranks-under-older-managers", self.build)
        self.run_short_jobs("old-ranks-under-older-managers", self.older)

    def test_aggregators_are_replaced_one_after_another(self) -> None:
        for name in ("leaf-a", "leaf-b"):
            self.start_aggregator(name, self.older)
        self.start_job(self.older)
        for name in ("leaf-a", "leaf-b"):
            self.stop(name)
            self.start_aggregator(name, self.build)
            self.expect_running_job()
        self.run_short_jobs("new-ranks", self.build)
        self.end_job()


if __name__ == "__main__":
    if not has_etcd():
        print("skipped: etcd is missing (scripts/setup --etcd)")
        sys.exit(77)
    if not os.environ.get("TRIBUTARY_OLDER_BUILD"):
        print("skipped: TRIBUTARY_OLDER_BUILD names no build of an older version; scripts/upgrade-check makes one, and runs this test")
        sys.exit(77)
    RollingUpgrade.root, RollingUpgrade.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    RollingUpgrade.older = Path(os.environ["TRIBUTARY_OLDER_BUILD"]).resolve()
    del sys.argv[1:3]
    unittest.main(verbosity=1)
