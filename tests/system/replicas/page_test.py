#!/usr/bin/env python3
"""Runs the ten lines of docs/operations/replicas.md as they stand, on three machines, and kills the leader.

    page_test.py REPOSITORY BUILD

Three network namespaces stand for the machines m1, m2 and m3. Each has a name, a folder in place of /var/lib, and a
member of etcd: e1, e2 and e3. Needs root.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import network_namespaces

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

MACHINES = (1, 2, 3)
BLOCK = re.compile(r"<!-- tried by replicas_page_test -->\n```\n(.*?)```", re.DOTALL)
# A job of two ranks, which ends with an error if its sums do not go through an aggregator.
JOB = """
for rank in 0 1; do RANK=$rank WORLD_SIZE=2 tributary perf all_reduce -b 64K -e 64K & ranks+=($!); done
for rank in "${ranks[@]}"; do wait "$rank"; done
"""


class Page(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.mark, self.network = f"tq{os.getpid() % 10000}", f"10.{1 + os.getpid() % 200}.3"
        page = (self.root / "docs/operations/replicas.md").read_text()
        self.parts = re.split(r"^# (.*)\n", BLOCK.search(page)[1], flags=re.MULTILINE)[1:]
        self.scripts = [commands.strip() for commands in self.parts[1::2]]
        self.assertLessEqual(len("\n".join(self.scripts).splitlines()), 10, "the page promises ten lines")
        self.groups: dict[str, subprocess.Popen] = {}
        self.addCleanup(self.clean)
        self.make_scp()
        self.ip("link", "add", f"{self.mark}b", "type", "bridge")
        self.ip("link", "set", f"{self.mark}b", "up")
        for i in MACHINES:
            self.make_machine(i)
        for i in MACHINES:
            self.run_on(i, f"e{i}", f"exec /usr/bin/etcd --pre-vote --name e{i} --data-dir {self.folder}/etcd{i} --listen-client-urls http://{self.network}.{i}:2379 "
                        f"--advertise-client-urls http://e{i}:2379 --listen-peer-urls http://{self.network}.{i}:2380 --initial-advertise-peer-urls http://e{i}:2380 "
                        f"--initial-cluster {','.join(f'e{j}=http://e{j}:2380' for j in MACHINES)} --initial-cluster-state new")

    @staticmethod
    def ip(*words: str) -> None:
        subprocess.run(("ip", *words), check=True, capture_output=True, text=True)

    def make_scp(self) -> None:
        """Makes an scp that copies from another machine's folder."""
        (self.folder / "bin").mkdir()
        scp = self.folder / "bin/scp"
        scp.write_text(f'#!/bin/bash\nset -eu\nfrom=${{1#*:/var/lib/}}\nexec cp -p "{self.folder}/${{1%%:*}}/$from" "$2"\n')
        scp.chmod(0o755)

    def make_machine(self, i: int) -> None:
        name = f"{self.mark}m{i}"
        etc = Path("/etc/netns") / name  # `ip netns exec` shows these files in /etc
        etc.mkdir(parents=True)
        (etc / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{self.network}.{j} m{j} e{j}\n" for j in MACHINES))
        (self.folder / f"m{i}").mkdir()
        self.ip("netns", "add", name)
        self.ip("link", "add", f"{name}o", "type", "veth", "peer", "name", "eth0", "netns", name)
        self.ip("link", "set", f"{name}o", "master", f"{self.mark}b", "up")
        self.ip("-n", name, "addr", "add", f"{self.network}.{i}/24", "dev", "eth0")
        self.ip("-n", name, "link", "set", "eth0", "up")
        self.ip("-n", name, "link", "set", "lo", "up")

    def clean(self) -> None:
        for name in list(self.groups):
            self.kill(name)
        for i in MACHINES:
            subprocess.run(("ip", "netns", "del", f"{self.mark}m{i}"), check=False, capture_output=True)
            shutil.rmtree(f"/etc/netns/{self.mark}m{i}", ignore_errors=True)
        subprocess.run(("ip", "link", "del", f"{self.mark}b"), check=False, capture_output=True)

    def command_on(self, i: int, script: str) -> list[str]:
        begin = f"hostname m{i}\nmount --bind {self.folder}/m{i} /var/lib\n"
        return ["ip", "netns", "exec", f"{self.mark}m{i}", "unshare", "--uts", "bash", "-euc", begin + script]

    def settings(self, **more: str) -> dict[str, str]:
        programs = ":".join(str(self.build / part) for part in ("tree-manager", "aggregator", "client/cli"))
        return self.environment(PATH=f"{self.folder}/bin:{programs}:{os.environ['PATH']}", HOME=str(self.folder), **more)

    def run_on(self, i: int, name: str, script: str) -> None:
        """Runs the script until kill()."""
        output = self.log(name).open("w")
        self.addCleanup(output.close)
        self.groups[name] = subprocess.Popen(self.command_on(i, script), stdout=output, stderr=output, env=self.settings(), start_new_session=True)

    def kill(self, name: str) -> None:
        process = self.groups.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=LIMIT_SECONDS)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def said_on(self, i: int, script: str, **more: str) -> tuple[int, str]:
        ended = subprocess.run(self.command_on(i, script), env=self.settings(**more), capture_output=True, text=True, check=False, timeout=2 * LIMIT_SECONDS)
        return ended.returncode, ended.stdout + ended.stderr

    def leader(self) -> str:
        """Returns what the page's question is answered: the URL of the leader, or an empty text."""
        code, said = self.said_on(3, self.scripts[2])
        found = re.search(r'"leader":\s*"(http://m[123]:7470)"', said) if code == 0 else None
        return found[1] if found else ""

    def expect_job(self) -> None:
        code, said = self.said_on(3, self.scripts[3] + JOB, MASTER_ADDR=f"{self.network}.3", MASTER_PORT="2000", TRIBUTARY_LOCAL="off", TRIBUTARY_REQUIRE="in-network",
                                  TRIBUTARY_TUNING="off", TRIBUTARY_TIMEOUT="30")
        self.assertEqual(code, 0, said)

    def test_jobs_start_also_after_the_leader_was_killed(self) -> None:
        self.run_on(1, "m1", self.scripts[0] + "\nwait")
        key = self.folder / "m1/tributary-manager/signing.key"
        self.wait_until(lambda: key.exists() and "serving on" in self.log("m1").read_text(), lambda: self.log("m1").read_text())
        for i in (2, 3):
            self.run_on(i, f"m{i}", self.scripts[1] + "\nwait")
            self.wait_until(lambda i=i: "serving on" in self.log(f"m{i}").read_text(), lambda i=i: self.log(f"m{i}").read_text())
        self.wait_until(lambda: self.leader() == "http://m1:7470", lambda: self.log("m1").read_text() + self.log("m2").read_text())
        (self.folder / "leaf.yaml").write_text(
            f"{self.scripts[4]}\nname: leaf-a\nlisten: {self.network}.2:0\nhttp_listen: 127.0.0.1:0\nworkers: 1\nmemory: 256MiB\n"
            f"token_file: {self.folder}/m1/tributary-manager/aggregator.token\nstate_file: {self.folder}/leaf.key\n")
        self.run_on(2, "leaf", f"exec tributary-aggregator --config {self.folder}/leaf.yaml")
        self.wait_until(lambda: "leaf-a" in self.said_on(3, self.scripts[3] + "\ntributary aggregators")[1], lambda: self.log("leaf").read_text())
        self.expect_job()
        self.kill("m1")
        self.wait_until(lambda: self.leader() in ("http://m2:7470", "http://m3:7470"), lambda: self.log("m2").read_text())
        self.expect_job()


if __name__ == "__main__":
    network_namespaces.skip_without()
    Page.root, Page.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:3]
    unittest.main(verbosity=1)
