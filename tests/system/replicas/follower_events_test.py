#!/usr/bin/env python3
"""Events through a manager that follows: the leader of three managers is killed, and a reader at a follower loses no event and hears none twice.

    follower_events_test.py REPOSITORY BUILD

Etcd is real: three members on loopback.
"""

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

ETCD = "/usr/bin/etcd"
MEMBERS = MANAGERS = 3
PACE_SECONDS = 0.05  # between two registrations
ENOUGH = 12          # events before and after a kill


def get(port: int, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
    """Returns status, headers and body; the status is 0 if no answer comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, http.client.HTTPMessage(), ""
    finally:
        connection.close()


class Reader:
    """Listens at one manager as a page in a browser does: it resumes by the last id when an answer ends, and looks at everything again when it has missed events."""

    def __init__(self, port: int) -> None:
        self.port, self.last, self.retry_seconds = port, "", 1.0
        self.ids: list[int] = []
        self.heard: list[str] = []       # the aggregators whose registrations were told
        self.looked_at: set[str] = set()  # the aggregators in the overviews
        self.missed, self.answers, self.refused = 0, 0, 0
        self.stopped = threading.Event()
        self.connection: http.client.HTTPConnection | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.stopped.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
                self.listen()
            self.stopped.wait(self.retry_seconds)

    def listen(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            self.connection.request("GET", "/v1/events", headers={"Accept": "text/event-stream"} | ({"Last-Event-ID": self.last} if self.last else {}))
            answer = self.connection.getresponse()
            if answer.status != 200:
                self.refused += 1
                return
            self.answers += 1
            kind, data, identity = "", "", self.last
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(":")
                value = value.removeprefix(" ")
                if name == "retry":
                    self.retry_seconds = int(value) / 1000
                elif name == "id":
                    identity = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    data = value
                elif not name:  # a message ends, or this is a heartbeat
                    self.last = identity
                    if data:
                        self.hear(kind, data)
                    kind = data = ""
        finally:
            self.connection.close()

    def hear(self, kind: str, data: str) -> None:
        if kind == "missed":
            self.missed += 1
            self.look_at_everything()
            return
        event = json.loads(data)
        self.ids.append(event["id"])
        if kind == "aggregator-registered":
            self.heard.append(event["aggregator"])

    def look_at_everything(self) -> None:
        while not self.stopped.is_set():
            status, headers, body = get(self.port, "/v1/overview")
            if status == 200 and "Tributary-Copy" not in headers:
                self.looked_at |= {one["name"] for one in json.loads(body)["aggregators"]}
                return
            self.stopped.wait(0.2)

    def knows(self) -> set[str]:
        return self.looked_at | set(self.heard)

    def stop(self) -> None:
        self.stopped.set()
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.close()
        self.thread.join(timeout=LIMIT_SECONDS)


class Registrar:
    """Registers one aggregator after the other, at any manager that answers."""

    def __init__(self, ports: list[int], token: str) -> None:
        self.ports, self.token = ports, token
        self.known: list[str] = []   # acknowledged
        self.unsure: set[str] = set()  # asked for more than once, so perhaps registered twice
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        number = 0
        while not self.stopped.is_set():
            name = f"box-{number}"
            if self.register(name, self.ports[number % len(self.ports)]):
                self.known.append(name)
                number += 1
            else:
                self.unsure.add(name)
                self.ports = [*self.ports[1:], self.ports[0]]
            self.stopped.wait(PACE_SECONDS)

    def register(self, name: str, port: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        try:
            connection.request("POST", "/v1/aggregators", json.dumps({"name": name, "host": name, "data": "10.0.0.1:7471", "http": "10.0.0.1:7472",
                                                                      "memory_bytes": 1 << 30}), {"Authorization": f"Bearer {self.token}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join(timeout=LIMIT_SECONDS)


class FollowerEvents(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.start_etcd()
        self.ports = {f"m{i}": self.start_manager(i) for i in range(MANAGERS)}

    @staticmethod
    def free_ports(count: int) -> list[int]:
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
            for one in sockets:
                one.bind(("127.0.0.1", 0))
            return [one.getsockname()[1] for one in sockets]

    def start_etcd(self) -> None:
        ports = self.free_ports(2 * MEMBERS)
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
        port = self.start(f"m{i}", "tree-manager/tributary-manager",
                          f"listen: 127.0.0.1:0\nstate_directory: {state}\nstore: {self.store}\nleader_lease: 3s\naggregator_lease: 1h\ngroup_lease: 1h\nlog_level: warn\n")["port"]
        if i == 0:
            self.wait_until(lambda: self.role(port) == "leader", "the first manager does not lead")
        return port

    def role(self, port: int) -> str:
        status, _, body = get(port, "/v1/leader")
        return json.loads(body)["role"] if status == 200 else ""

    def leader(self) -> str | None:
        return next((name for name, port in self.ports.items() if self.role(port) == "leader"), None)

    def test_a_reader_at_a_follower_loses_no_event_and_hears_none_twice(self) -> None:
        self.assertEqual(self.leader(), "m0")
        readers = {name: Reader(self.ports[name]) for name in ("m1", "m2")}
        for name, reader in readers.items():
            self.addCleanup(reader.stop)
            self.wait_until(lambda reader=reader: reader.last, f"the stream at {name} does not begin")
        registrar = Registrar(list(self.ports.values()), (self.folder / "state0/aggregator.token").read_text().strip())
        self.addCleanup(registrar.stop)
        for name, reader in readers.items():
            self.wait_until(lambda reader=reader: len(reader.heard) >= ENOUGH, lambda name=name: f"the reader at {name} hears nothing: {readers[name].__dict__}")
            self.assertEqual(reader.missed, 0)
            self.assertGreater(reader.answers, 1, "the answers of a follower end at once")
        self.processes["m0"].kill()
        killed = time.monotonic()
        self.processes["m0"].wait(timeout=LIMIT_SECONDS)
        del self.ports["m0"]
        self.wait_until(self.leader, "nobody leads")
        found = time.monotonic() - killed
        for name, reader in readers.items():
            before = len(reader.heard)
            self.wait_until(lambda reader=reader, before=before: len(reader.heard) >= before + ENOUGH, lambda name=name: f"{name} tells nothing: {readers[name].__dict__}")
        registrar.stop()
        for name, reader in readers.items():
            self.wait_until(lambda reader=reader: reader.knows() >= set(registrar.known),
                            lambda reader=reader, name=name: f"the reader at {name} has lost {set(registrar.known) - reader.knows()}")
            self.assertEqual(reader.missed, 1, f"{name}: only the change of the leader hides events from a reader")
            self.assertEqual(reader.ids, sorted(set(reader.ids)), f"{name}: an event was told twice, or late")
            twice = {one for one in reader.heard if reader.heard.count(one) > 1}
            self.assertLessEqual(twice, registrar.unsure, name)
            print(f"{name}: {len(reader.heard)} events in {reader.answers} answers, {reader.refused} refused; a leader after {found:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    if not os.access(ETCD, os.X_OK):
        print("skipped: etcd is missing (scripts/setup --etcd)")
        sys.exit(77)
    FollowerEvents.root, FollowerEvents.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:3]
    unittest.main(verbosity=1)
