"""Clients that make, renew, rebuild and delete groups all the time, at several managers, and note what was acknowledged."""

import collections
import http.client
import json
import threading
import time
from collections.abc import Callable

LIMIT_SECONDS = 60.0  # most time that a request may take, with all its repetitions
LIVING_MAX = 10  # most groups of one client; it deletes the oldest
PAUSE_SECONDS = 0.02  # between a client's rounds, which leaves the processors to the managers


class Wrong(Exception):
    """An answer that no client may get."""


class Client(threading.Thread):
    """Works until stop(). Each request is repeated, at the next manager, until it is answered."""

    def __init__(self, name: str, addresses: Callable[[], list[int]], token: str) -> None:
        super().__init__(name=name, daemon=True)
        self.addresses, self.token = addresses, token
        self.living: dict[int, int] = {}  # acknowledged groups, with the last epoch
        self.deleted: set[int] = set()
        self.epochs: set[tuple[int, int]] = set()  # that were given, with their groups
        self.counts: collections.Counter[str] = collections.Counter()
        self.fence = self.turn = 0
        self.longest_seconds = 0.0
        self.wrong: str | None = None
        self.ends = threading.Event()

    def once(self, port: int, method: str, path: str, body: dict | None) -> tuple[int, dict]:
        """Returns status and answer; the status is 0 if no answer comes."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return 0, {}
        finally:
            connection.close()

    def ask(self, method: str, path: str, body: dict | None = None) -> dict:
        begin = time.monotonic()
        status, answer = 0, {}
        while time.monotonic() < begin + LIMIT_SECONDS:
            ports = self.addresses()
            self.turn += 1
            status, answer = self.once(ports[self.turn % len(ports)], method, path, body)
            if status not in (0, 503):
                break
            time.sleep(0.02)  # how often to ask; no result depends on it
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - begin)
        if status != 200:
            raise Wrong(f"{method} {path} gets {status}: {answer}")
        return answer

    def take(self, answer: dict, epoch: int) -> None:
        """Notes a descriptor that must have this epoch and no fence below those of earlier answers."""
        group = answer["group"]
        if answer["epoch"] != epoch or (group, epoch) in self.epochs or group in self.deleted:
            raise Wrong(f"group {group} gets epoch {answer['epoch']} in place of {epoch}")
        if answer["fence"] < self.fence:
            raise Wrong(f"group {group} gets the fence {answer['fence']} after {self.fence}")
        self.fence = answer["fence"]
        self.epochs.add((group, epoch))
        self.living[group] = epoch

    def make(self) -> None:
        self.counts["made"] += 1
        answer = self.ask("POST", "/v1/groups", {"job": "churn", "ranks": ["x", "y"], "lanes": 1, "request_id": f"{self.name}-{self.counts['made']}"})
        if not answer["lanes"]:
            raise Wrong(f"group {answer['group']} has no tree: {answer.get('reason')}")
        self.take(answer, 1)

    def rebuild(self, group: int) -> None:
        self.take(self.ask("POST", f"/v1/groups/{group}/rebuild", {"epoch": self.living[group], "failed": []}), self.living[group] + 1)
        self.counts["rebuilt"] += 1

    def renew(self, group: int) -> None:
        self.ask("PUT", f"/v1/groups/{group}/lease", {"want_record": True})
        self.counts["renewed"] += 1

    def delete(self, group: int) -> None:
        self.ask("DELETE", f"/v1/groups/{group}")
        del self.living[group]
        self.deleted.add(group)
        self.counts["deleted"] += 1

    def run(self) -> None:
        try:
            while not self.ends.wait(PAUSE_SECONDS):
                self.make()
                groups = list(self.living)
                self.rebuild(groups[-1])
                for group in groups[self.counts["made"] % 4 :: 4]:
                    self.renew(group)
                if len(groups) > LIVING_MAX:
                    self.delete(groups[0])
        except Wrong as wrong:
            self.wrong = str(wrong)

    def stop(self) -> None:
        self.ends.set()
        self.join()
