#!/usr/bin/env python3
"""Sealed connections over DPDK between real processes; in_network.sh runs it.

    in_network.sh sealed_test.py TRIBUTARY

A reader of all the network's interfaces looks for frames, tokens and gradients, while ranks reduce through an aggregator
whose device DPDK drives.
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
from packet_reader import PayloadReader  # noqa: E402: the line above finds it

LIMIT_SECONDS = 120.0
RIGHT = "# Out of bounds values : 0 OK"


class Sealed(unittest.TestCase):
    program = ""

    def seen(self, security: str) -> dict[str, bool]:
        """Returns the kinds of data that a reader of the network finds."""
        environment = os.environ | {"TRIBUTARY_LOCAL": "off", "TRIBUTARY_SECURITY": security, "TRIBUTARY_PATH": "in-network"}
        perf = [self.program, "perf", "all_reduce", "-b", "1048576", "-e", "1048576", "-n", "1", "-w", "0", "-c", "1"]
        reader = PayloadReader()
        try:
            ended = subprocess.run([self.program, "run", "--ranks", "2", "--aggregators", "1", "--", *perf], env=environment, capture_output=True, text=True,
                                   timeout=LIMIT_SECONDS)
        finally:
            reader.end()
        self.assertIn(RIGHT, ended.stdout, ended.stderr)
        self.assertGreater(sum(map(len, reader.udp)), 4 << 20, "the reader has seen the vectors pass")
        return reader.kinds()

    def test_a_reader_of_the_network_finds_nothing_where_it_is_encrypted(self) -> None:
        self.assertEqual(self.seen("off"), {"frames": True, "tokens": True, "gradients": True})
        self.assertEqual(self.seen("authenticate"), {"frames": True, "tokens": True, "gradients": True})
        self.assertEqual(self.seen("encrypt"), {"frames": False, "tokens": False, "gradients": False})


if __name__ == "__main__":
    Sealed.program = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
