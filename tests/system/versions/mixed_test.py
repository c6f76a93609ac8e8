#!/usr/bin/env python3
"""A job whose aggregator uses another version of the wire protocol reduces between its ranks, and reports the reason.

A proxy between ranks and aggregator writes the next version into the header of every frame, so each side reads frames
of another version than its own, as during an upgrade. The ranks and the aggregator are real processes.

mixed_test.py MANAGER AGGREGATOR TRIBUTARY
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from free_ports import free_port  # noqa: E402: the line above finds it

MANAGER, AGGREGATOR, TRIBUTARY = sys.argv[1:4]
HEADER_BYTES, VERSION_AT, PAYLOAD_AT = 64, 4, 8  # tributary/protocol/frame.h
TIME_LIMIT_S = 40


class Proxy:
    """Passes connections on; adds `step` to the version of each frame."""

    def __init__(self, at: tuple[str, int], to: tuple[str, int]) -> None:
        self.step = 0
        self.versions: set[int] = set()
        self.to = to
        self.door = socket.create_server(at)
        threading.Thread(target=self.take, daemon=True).start()

    def take(self) -> None:
        while True:
            near, _ = self.door.accept()
            far = socket.create_connection(self.to)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    def carry(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            with source.makefile("rb") as stream:
                while len(header := bytearray(stream.read(HEADER_BYTES))) == HEADER_BYTES:
                    self.versions.add(header[VERSION_AT])
                    header[VERSION_AT] += self.step
                    payload = stream.read(int.from_bytes(header[PAYLOAD_AT : PAYLOAD_AT + 4], "little"))
                    sink.sendall(header + payload)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def until(what: str, condition) -> None:
    end = time.monotonic() + TIME_LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"within {TIME_LIMIT_S} s, this did not come true: {what}")
        time.sleep(0.05)


class MixedVersions(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.manager = f"http://127.0.0.1:{self.start_manager()}"
        port = free_port()
        self.proxy = Proxy(("127.0.0.2", port), ("127.0.0.1", port))
        (self.folder / "aggregator.yaml").write_text(
            f"manager: {self.manager}\nname: agg\ntoken_file: {self.folder}/state/aggregator.token\nlisten: 127.0.0.1:{port}\n"
            f"advertise: 127.0.0.2\nhttp_listen: 127.0.0.1:0\nshared_memory: off\nmemory: 64MiB\nworkers: 1\n")
        self.start("aggregator", AGGREGATOR, "--config", str(self.folder / "aggregator.yaml"))
        self.wait_until_active()

    def wait_until_active(self) -> None:
        def active() -> bool:
            return "active" in subprocess.run([TRIBUTARY, "aggregators", "agg", "--manager", self.manager], capture_output=True, text=True).stdout

        until("the aggregator is active", active)

    def start(self, name: str, *command: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait(), log.close()))

    def start_manager(self) -> int:
        ready = self.folder / "ready"
        self.start("manager", MANAGER, "--listen", "127.0.0.1:0", "--state-dir", str(self.folder / "state"), "--ready-file", str(ready))
        until("the manager serves", ready.exists)
        return int(re.search(r'"port": ?(\d+)', ready.read_text())[1])

    def run_job(self, name: str) -> str:
        """Runs two ranks, and returns the output of both."""
        environment = {**os.environ, "WORLD_SIZE": "2", "TRIBUTARY_MANAGER": self.manager, "TRIBUTARY_TOKEN_FILE": str(self.folder / "state/job.token"),
                       "TRIBUTARY_LOCAL": "off", "TRIBUTARY_SHM": "off", "TRIBUTARY_TUNING": "off", "TRIBUTARY_LOG": "info"}
        command = [TRIBUTARY, "perf", "all_reduce", "-b", "64K", "-e", "64K", "-n", "20", "--id-file", str(self.folder / name)]
        ranks = [subprocess.Popen(command, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for rank in range(2)]
        said = [rank.communicate(timeout=TIME_LIMIT_S)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], said)
        return "\n".join(said)

    def test_the_job_goes_on_between_its_ranks_and_takes_trees_when_all_speak_one_version(self) -> None:
        self.proxy.step = 1
        mixed = self.run_job("mixed")
        self.assertRegex(mixed, r"in-network 0.*, fallback [1-9]")
        self.assertIn("runs another version of Tributary", mixed)
        self.assertNotEqual(self.proxy.versions, set())
        self.proxy.step = 0
        self.wait_until_active()  # the first group has reported that it saw the aggregator fail
        self.assertRegex(self.run_job("same"), r"in-network [1-9]\d*")
        self.assertEqual(len(self.proxy.versions), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
