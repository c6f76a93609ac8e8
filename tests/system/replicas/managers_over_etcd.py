"""Several real managers over a real etcd of three members on loopback, for tests in Python."""

import http.client
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it
from free_ports import free_ports  # noqa: E402

ETCD = "/usr/bin/etcd"
MEMBERS = MANAGERS = 3


def has_etcd() -> bool:
    return os.access(ETCD, os.X_OK)


def get(port: int, path: str) -> tuple[int, http.client.HTTPMessage, str]:
    """Returns status, headers and body; the status is 0 if no answer comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, http.client.HTTPMessage(), ""
    finally:
        connection.close()


class ManagersOverEtcd(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.start_etcd()
        self.ports = {f"m{i}": self.start_manager(i) for i in range(MANAGERS)}

    def start_etcd(self) -> None:
        ports = free_ports(2 * MEMBERS)
        clients, peers = ports[:MEMBERS], ports[MEMBERS:]
        all_members = ",".join(f"e{i}=http://127.0.0.1:{peer}" for i, peer in enumerate(peers))
        for i in range(MEMBERS):
            log = (self.folder / f"e{i}.log").open("w")
            self.addCleanup(log.close)
            client, peer = f"http://127.0.0.1:{clients[i]}", f"http://127.0.0.1:{peers[i]}"
            process = subprocess.Popen([ETCD, "--name", f"e{i}", "--data-dir", self.folder / f"e{i}", "--listen-client-urls", client, "--advertise-client-urls", client,
                                        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", all_members, "--initial-cluster-state", "new"],
                                       stdout=log, stderr=log)
            self.addCleanup(process.wait, LIMIT_SECONDS)
            self.addCleanup(process.kill)
        self.store = "etcd://" + ",".join(f"127.0.0.1:{port}" for port in clients)
        self.wait_until(lambda: '"true"' in get(clients[0], "/health")[2], "etcd does not serve")

    def start_manager(self, i: int) -> int:
        state = self.folder / f"state{i}"
        if i != 0:
            state.mkdir(mode=0o700)
            shutil.copy(self.folder / "state0/signing.key", state)
        port = self.run_manager(i)
        if i == 0:
            self.wait_until(lambda: self.role(port) == "leader", "the first manager does not lead")
        return port

    def run_manager(self, i: int) -> int:
        return self.start(f"m{i}", "tree-manager/tributary-manager",
                          f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state{i}\nstore: {self.store}\nleader_lease: 8s\naggregator_lease: 1h\ngroup_lease: 1h\nlog_level: warn\n")["port"]

    def logs(self) -> str:
        return "".join(f"== {name}\n{(self.folder / f'{name}.log').read_text()}" for name in self.processes)

    def role(self, port: int) -> str:
        status, _, body = get(port, "/v1/leader")
        return json.loads(body)["role"] if status == 200 else ""

    def leader(self) -> str | None:
        return next((name for name, port in self.ports.items() if self.role(port) == "leader"), None)
