#!/usr/bin/env python3
"""Cuts the leader's machine off from the network of etcd, but not from its clients.

    partition_test.py BUILD

Three network namespaces stand for three machines. Each has a member of etcd, a manager, and two links: one to the
network of etcd, one to the network of clients. Needs root.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import network_namespaces

LIMIT_SECONDS = 60.0
MACHINES = (1, 2, 3)
GROUP = {"job": "j", "ranks": ["a", "b"]}


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


class Partition(unittest.TestCase):
    build = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.mark = f"tp{os.getpid() % 10000}"
        self.network = 1 + os.getpid() % 200
        self.processes: list[subprocess.Popen] = []
        self.addCleanup(self.end_all)
        for net in ("e", "c"):
            run("ip", "netns", "add", f"{self.mark}{net}")
            run("ip", "-n", f"{self.mark}{net}", "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", f"{self.mark}{net}", "link", "set", "bridge", "up")
        run("ip", "-n", f"{self.mark}c", "addr", "add", f"10.{self.network}.2.100/24", "dev", "bridge")
        run("ip", "-n", f"{self.mark}c", "link", "set", "lo", "up")
        for i in MACHINES:
            self.make_machine(i)
        for i in MACHINES:
            self.start_etcd(i)
        for i in MACHINES:
            self.start_manager(i)

    def namespace(self, i: int) -> str:
        return f"{self.mark}m{i}"

    def etcd_address(self, i: int) -> str:
        return f"10.{self.network}.1.{i}"

    def client_address(self, i: int) -> str:
        return f"10.{self.network}.2.{i}"

    def make_machine(self, i: int) -> None:
        name = self.namespace(i)
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        for net, address in (("e", self.etcd_address(i)), ("c", self.client_address(i))):
            run("ip", "-n", name, "link", "add", net, "type", "veth", "peer", "name", f"to{i}", "netns", f"{self.mark}{net}")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", net)
            run("ip", "-n", name, "link", "set", net, "up")
            run("ip", "-n", f"{self.mark}{net}", "link", "set", f"to{i}", "master", "bridge", "up")

    def end_all(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(timeout=LIMIT_SECONDS)
        for name in (*(self.namespace(i) for i in MACHINES), f"{self.mark}e", f"{self.mark}c"):
            subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)

    def start(self, i: int, name: str, *words: str) -> None:
        log = (self.folder / f"{name}{i}.log").open("w")
        self.addCleanup(log.close)
        self.processes.append(subprocess.Popen(("ip", "netns", "exec", self.namespace(i), *words), stdout=log, stderr=log))

    def start_etcd(self, i: int) -> None:
        at = self.etcd_address(i)
        self.start(i, "etcd", "/usr/bin/etcd", "--name", f"m{i}", "--data-dir", f"{self.folder}/etcd{i}", "--listen-client-urls", f"http://{at}:2379",
                   "--advertise-client-urls", f"http://{at}:2379", "--listen-peer-urls", f"http://{at}:2380", "--initial-advertise-peer-urls", f"http://{at}:2380",
                   "--initial-cluster", ",".join(f"m{j}=http://{self.etcd_address(j)}:2380" for j in MACHINES), "--initial-cluster-state", "new")

    def start_manager(self, i: int) -> None:
        state, ready = self.folder / f"state{i}", self.folder / f"ready{i}"
        if i != 1:
            state.mkdir(mode=0o700)
            shutil.copy(self.folder / "state1/signing.key", state)
        (self.folder / f"m{i}.yaml").write_text(
            f"listen: {self.client_address(i)}:7470\nadvertise: http://{self.client_address(i)}:7470\nallow_plain_http: true\nstate_directory: {state}\n"
            f"ready_file: {ready}\nstore: etcd://{','.join(f'{self.etcd_address(j)}:2379' for j in MACHINES)}\nleader_lease: 3s\ngroup_lease: 1h\n")
        self.start(i, "manager", str(self.build / "tree-manager/tributary-manager"), "--config", str(self.folder / f"m{i}.yaml"))
        self.wait_until(ready.exists, f"manager {i} does not serve")
        if i == 1:
            self.wait_until(lambda: self.leader() == 1, "the first manager does not lead")

    def wait_until(self, condition, what: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.1)  # how often to look; nothing depends on it

    def ask(self, i: int, method: str, path: str, body: dict | None = None) -> tuple[int, dict]:
        """Asks one manager from the clients' network; the status is 0 if no answer comes."""
        token = (self.folder / "state1/job.token").read_text().strip() if body is not None else ""
        asked = subprocess.run(("ip", "netns", "exec", f"{self.mark}c", "curl", "--silent", "--max-time", "20", "--request", method, "--write-out", "\n%{http_code}",
                                "--header", f"Authorization: Bearer {token}", "--data", json.dumps(body) if body is not None else "",
                                f"http://{self.client_address(i)}:7470{path}"), capture_output=True, text=True, check=False)
        text, status = asked.stdout.rsplit("\n", 1)
        return int(status), json.loads(text) if text.startswith("{") else {}

    def role(self, i: int) -> str:
        return self.ask(i, "GET", "/v1/leader")[1].get("role", "")

    def leader(self, *, but: int = 0) -> int:
        return next((i for i in MACHINES if i != but and (self.folder / f"ready{i}").exists() and self.role(i) == "leader"), 0)

    def test_a_leader_that_is_cut_off_from_etcd_alone(self) -> None:
        status, made = self.ask(2, "POST", "/v1/groups", GROUP)
        self.assertEqual(status, 200, made)
        run("ip", "-n", self.namespace(1), "link", "set", "e", "down")
        self.wait_until(lambda: self.leader(but=1) != 0, "no other manager leads")
        new = self.leader(but=1)
        self.assertEqual(self.role(1), "follower", "two managers lead")
        for method, path, body in (("POST", "/v1/groups", GROUP), ("POST", f"/v1/groups/{made['group']}/rebuild", {"epoch": made["epoch"]}),
                                   ("PUT", f"/v1/groups/{made['group']}/lease", {"want_record": True})):
            status, answer = self.ask(1, method, path, body)
            self.assertEqual((status, answer.get("error", {}).get("code")), (503, "no_leader"), (path, answer))
        status, second = self.ask(new, "POST", "/v1/groups", GROUP)
        self.assertEqual(status, 200, second)
        self.assertGreater(second["fence"], made["fence"])
        self.assertNotEqual(second["group"], made["group"])
        run("ip", "-n", self.namespace(1), "link", "set", "e", "up")

        # A member of etcd that comes back may make etcd elect again, and then managers, too: any of them may lead.
        def serves_again() -> bool:
            status, answer = self.ask(1, "POST", "/v1/groups", GROUP)
            return status == 200 and answer["fence"] >= second["fence"]

        self.wait_until(serves_again, "the manager that was cut off does not serve again under the new fence")
        listed = {group["group"] for group in self.ask(1, "GET", "/v1/groups")[1]["groups"]}
        self.assertLessEqual({made["group"], second["group"]}, listed)


if __name__ == "__main__":
    network_namespaces.skip_without()
    Partition.build = Path(sys.argv[1]).resolve()
    del sys.argv[1:]
    unittest.main(verbosity=1)
