#!/usr/bin/env python3
"""The stream of events of a real manager: an aggregator that dies, a stream that resumes, tenants, many readers.

    events_test.py REPOSITORY BUILD
"""

import contextlib
import http.client
import json
import re
import socket
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

LEASE_SECONDS = 2


class Stream:
    """Reads a stream in a thread of its own. `messages`: (kind, id, data) of each message; `last`: the id to resume from."""

    def __init__(self, port: int, token: str = "", last: str = "") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        self.connection.request("GET", "/v1/events", headers={"Accept": "text/event-stream"} | ({"Authorization": f"Bearer {token}"} if token else {})
                                | ({"Last-Event-ID": last} if last else {}))
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        self.status, self.headers = self.answer.status, self.answer.headers
        self.messages: list[tuple[str, str, dict]] = []
        self.last, self.heartbeats, self.ended = last, 0, False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        kind, identity = "", ""
        try:
            for line in self.answer:
                name, _, value = line.decode().rstrip("\n").partition(":")
                value = value.removeprefix(" ")
                if name == "event":
                    kind = value
                elif name == "id":
                    identity = self.last = value
                elif name == "data":
                    self.messages.append((kind, identity, json.loads(value)))
                elif not name and line.startswith(b":"):
                    self.heartbeats += 1
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the connection has ended
        self.ended = True

    def kinds(self) -> list[str]:
        return [kind for kind, _, _ in list(self.messages)]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # also wakes the thread that reads
        self.thread.join()
        self.connection.close()


class Events(Daemons):
    def start_manager(self, more: str = "") -> None:
        self.port = self.start("manager", "tree-manager/tributary-manager",
                               f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\naggregator_lease: {LEASE_SECONDS}s\nlog_level: error\n" + more)["port"]

    def start_aggregator(self, name: str) -> None:
        self.start(name, "aggregator/tributary-aggregator",
                   f"name: {name}\nhost_id: {name}\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nmanager: http://127.0.0.1:{self.port}\n"
                   f"token_file: {self.folder}/state/aggregator.token\nstate_file: {self.folder}/{name}.state\nworkers: 1\nlog_level: error\n")

    def stream(self, token: str = "", last: str = "") -> Stream:
        made = Stream(self.port, token, last)
        self.addCleanup(made.close)
        return made

    def token(self, name: str, *who: str) -> str:
        file = self.folder / f"{name}.token"
        made = self.tributary("token", "make", *who, "--name", name, "--life", "1h", "--key-file", f"{self.folder}/state/identity.keys", "-O", str(file))
        self.assertEqual(made.returncode, 0, made.stderr)
        return file.read_text().strip()

    def call(self, method: str, path: str, token: str, body: dict | None = None) -> dict:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", None if body is None else json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {token}"} if token else {}, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)

    def secret(self, name: str) -> str:
        return (self.folder / "state" / name).read_text().strip()

    def test_a_killed_aggregator_is_told_within_its_lease_and_a_stream_resumes(self) -> None:
        self.start_manager()
        stream = self.stream()
        self.assertEqual((stream.status, stream.headers["Content-Type"]), (200, "text/event-stream"))
        self.start_aggregator("leaf-a")
        self.wait_until(lambda: "aggregator-registered" in stream.kinds(), "no event tells the registration")
        self.processes["leaf-a"].kill()
        killed = time.monotonic()
        self.wait_until(lambda: "aggregator-expired" in stream.kinds(), "no event tells the death")
        self.assertLess(time.monotonic() - killed, LEASE_SECONDS + 8)
        kind, identity, data = stream.messages[-1]
        self.assertEqual((kind, data["kind"], data["aggregator"], str(data["id"])), ("aggregator-expired", "aggregator-expired", "leaf-a", identity))
        self.wait_until(lambda: stream.heartbeats > 0, "a silent stream has no heartbeat")
        first = stream.messages[0][1]
        stream.close()
        again = self.stream(last=first)
        self.wait_until(lambda: again.kinds() == ["aggregator-expired"], lambda: f"the stream does not resume: {again.messages}")
        late = self.stream(last="12345")
        self.wait_until(lambda: "missed" in late.kinds(), "a reader of an earlier manager does not learn that it has missed events")

    def test_a_restarted_manager_tells_readers_that_they_have_missed_events(self) -> None:
        self.start_manager()
        self.start_aggregator("leaf-a")
        stream = self.stream()
        self.wait_until(lambda: stream.last, "the stream does not begin")
        self.processes["manager"].terminate()
        self.wait_until(lambda: stream.ended, "the stream does not end with its manager")
        self.processes["manager"].wait(timeout=LIMIT_SECONDS)
        (self.folder / "manager.ready").unlink()
        self.start_manager()
        again = self.stream(last=stream.last)
        self.wait_until(lambda: "missed" in again.kinds(), "nobody says that events were missed")

    def test_a_tenant_hears_nothing_of_other_tenants(self) -> None:
        self.start_manager("reads_need_token: true\n")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.call("GET", "/v1/events", "")
        self.assertEqual(refused.exception.code, 401)
        refused.exception.close()
        physics, chemistry = (self.token(name, "--tenant", name) for name in ("physics", "chemistry"))
        streams = {name: self.stream(token) for name, token in (("physics", physics), ("chemistry", chemistry))}
        self.call("POST", "/v1/groups", physics, {"job": "secret", "ranks": ["a", "b"]})
        self.call("POST", "/v1/groups", chemistry, {"job": "open", "ranks": ["a", "b"]})
        for name, job in (("physics", "secret"), ("chemistry", "open")):
            self.wait_until(lambda stream=streams[name]: "denied" in stream.kinds(), f"{name} hears nothing of its own group")
            self.assertEqual({data["job"] for _, _, data in streams[name].messages}, {job})
            self.assertEqual({event["job"] for event in self.call("GET", "/v1/events", physics if name == "physics" else chemistry)["events"]}, {job})
        eye = self.stream(self.token("eye", "--role", "reader"), "1")
        self.wait_until(lambda: eye.kinds().count("group-made") == 2, "a reader hears of all groups")
        root = self.token("root", "--role", "administrator")
        shown = self.tributary("token", "show", "--token-file", f"{self.folder}/chemistry.token")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.call("POST", "/v1/tokens/revoke", root, {"id": re.search(r"\b[0-9a-f]{16}\b", shown.stdout)[0]})
        self.wait_until(lambda: streams["chemistry"].ended, "the stream of a revoked token goes on")
        self.assertFalse(streams["physics"].ended)

    def test_many_readers_stop_neither_the_manager_nor_each_other(self) -> None:
        self.start_manager()
        readers = [self.stream() for _ in range(40)]
        self.assertEqual([stream.status for stream in readers].count(200), 32)
        self.assertEqual({stream.status for stream in readers}, {200, 503})
        self.call("POST", "/v1/groups", self.secret("job.token"), {"job": "train", "ranks": ["a", "b"]})
        good = [stream for stream in readers if stream.status == 200]
        self.wait_until(lambda: all("group-made" in stream.kinds() for stream in good), "a reader hears nothing")
        for stream in good:
            stream.close()
        self.wait_until(lambda: self.opens(), "the places of readers that have gone stay taken")

    def opens(self) -> bool:
        stream = Stream(self.port)
        stream.close()
        return stream.status == 200


if __name__ == "__main__":
    Events.root, Events.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:3]
    unittest.main(verbosity=1)
