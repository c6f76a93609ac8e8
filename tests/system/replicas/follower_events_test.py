#!/usr/bin/env python3
"""Events through a manager that follows: the leader of three managers is killed, and a reader at a follower loses no event and hears none twice.

    follower_events_test.py REPOSITORY BUILD

Etcd is real: three members on loopback.
"""

import contextlib
import http.client
import json
import socket
import sys
import threading
import time
import unittest
from pathlib import Path

from managers_over_etcd import LIMIT_SECONDS, ManagersOverEtcd, get, has_etcd

PACE_SECONDS = 0.05  # between two registrations
ENOUGH = 12          # events before and after a kill


class Reader:
    """Listens at one manager as a page in a browser does: it resumes by the last id when an answer ends, and looks at everything again when it has missed events."""

    def __init__(self, port: int) -> None:
        self.port, self.last, self.retry_seconds = port, "", 1.0
        self.ids: list[int] = []
        self.heard: list[str] = []       # the aggregators whose registrations were told
        self.looked_at: set[str] = set()  # the aggregators in the overviews
        self.missed, self.answers, self.refused = 0, 0, 0
        self.stopped = threading.Event()
        self.socket: socket.socket | None = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.stopped.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
                self.listen()
            self.stopped.wait(self.retry_seconds)

    def listen(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.request("GET", "/v1/events", headers={"Accept": "text/event-stream"} | ({"Last-Event-ID": self.last} if self.last else {}))
            self.socket = connection.sock
            answer = connection.getresponse()
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
            connection.close()

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
            self.socket.shutdown(socket.SHUT_RDWR)  # also wakes the thread that reads
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


class FollowerEvents(ManagersOverEtcd):
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
    if not has_etcd():
        print("skipped: etcd is missing (scripts/setup --etcd)")
        sys.exit(77)
    FollowerEvents.root, FollowerEvents.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:3]
    unittest.main(verbosity=1)
