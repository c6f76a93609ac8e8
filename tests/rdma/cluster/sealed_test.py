#!/usr/bin/env python3
"""Sealed connections over RDMA between real processes, in the virtual machine.

    sealed_test.py TRIBUTARY

A reader of all the machine's networks (RoCE's packets on the bridge between the simulated hosts, TCP on loopback) looks
for frames, tokens and gradients, while ranks reduce through an aggregator and without trees.
"""

import os
import re
import socket
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
from packet_reader import PacketReader  # noqa: E402: the line above finds it

LIMIT_SECONDS = 200.0
RIGHT = "# Out of bounds values : 0 OK"
FRAME = b"TRB1"
TOKEN = re.compile(rb"TRKT[\x01-\x1f][\x00-\x1f]")
PROBE_BYTES = 48
ROCE_PORT = 4791


class Capture(PacketReader):
    """Keeps the packets of RoCE on the bridge, and of TCP on loopback."""

    def __init__(self) -> None:
        self.roce: list[bytes] = []
        self.tcp: list[bytes] = []
        super().__init__(self.keep)

    def keep(self, packet: bytes, head: int, interface: str) -> None:
        if packet[23] == socket.IPPROTO_UDP and int.from_bytes(packet[head + 2:head + 4], "big") == ROCE_PORT and interface.startswith("host"):
            self.roce.append(packet[head + 8:])
        elif packet[23] == socket.IPPROTO_TCP and b"HTTP/1.1" not in packet:
            self.tcp.append(packet[head:])


class Sealed(unittest.TestCase):
    program = ""

    def reduce(self, security: str, trees: list[str], path: str) -> Capture:
        environment = os.environ | {"TRIBUTARY_TRANSPORT": "verbs", "TRIBUTARY_LOCAL": "off", "TRIBUTARY_SECURITY": security, "TRIBUTARY_PATH": path}
        perf = [self.program, "perf", "all_reduce", "-b", "1048576", "-e", "1048576", "-n", "1", "-w", "0", "-c", "1"]
        capture = Capture()
        try:
            ended = subprocess.run([self.program, "run", "--ranks", "4", *trees, "--", *perf], env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        finally:
            capture.end()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn(RIGHT, ended.stdout, ended.stderr)
        return capture

    def seen(self, security: str) -> dict[str, bool]:
        """Returns the kinds of data that a reader of the networks finds."""
        found = {"frames": False, "tokens": False, "gradients": False}
        for trees, path in ((["--aggregators", "1", "--levels", "1"], "in-network"), (["--aggregators", "0"], "fallback")):
            capture = self.reduce(security, trees, path)
            roce, tcp = b"|".join(capture.roce), b"|".join(capture.tcp)
            self.assertGreater(len(roce), 4 << 20, "the reader has seen the vectors pass")
            longest = max(capture.roce, key=len)
            probe = longest[len(longest) // 2:][:PROBE_BYTES]  # the vectors repeat themselves
            found["frames"] |= roce.count(FRAME) + tcp.count(FRAME) > 20
            found["tokens"] |= TOKEN.search(roce) is not None or TOKEN.search(tcp) is not None
            found["gradients"] |= roce.count(probe) > 10
        return found

    def test_a_reader_of_the_network_finds_nothing_where_it_is_encrypted(self) -> None:
        self.assertEqual(self.seen("off"), {"frames": True, "tokens": True, "gradients": True})
        self.assertEqual(self.seen("authenticate"), {"frames": True, "tokens": True, "gradients": True})
        self.assertEqual(self.seen("encrypt"), {"frames": False, "tokens": False, "gradients": False})


if __name__ == "__main__":
    Sealed.program = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
