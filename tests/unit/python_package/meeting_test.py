"""The unique id reaches every rank that knows the job's token, and no other process.

    meeting_test.py FOLDER_OF_THE_PACKAGE
"""

import os
import socket
import sys
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest import mock

sys.path.insert(0, sys.argv.pop(1))
from tributary import _meeting
from tributary._capi import TributaryError

ID = bytes(range(128))
SECONDS = 30.0


class Meetings(unittest.TestCase):
    def setUp(self) -> None:
        self.token = tempfile.NamedTemporaryFile()
        self.addCleanup(self.token.close)
        self.set_token("a secret")
        os.environ["TRIBUTARY_TOKEN_FILE"] = self.token.name
        self.addCleanup(os.environ.pop, "TRIBUTARY_TOKEN_FILE")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.address = self.listener.getsockname()
        self.pool = ThreadPoolExecutor(8)
        self.addCleanup(self.pool.shutdown)

    def set_token(self, text: str) -> None:
        Path(self.token.name).write_text(text)

    def serve(self, size: int, seconds: float = SECONDS):
        return self.pool.submit(_meeting._serve, self.listener, size, ID, time.monotonic() + seconds)

    def fetch(self, rank: int, seconds: float = SECONDS):
        return self.pool.submit(_meeting._fetch, self.address, rank, time.monotonic() + seconds)

    def test_every_rank_gets_the_id(self) -> None:
        server, ranks = self.serve(4), [self.fetch(rank) for rank in (1, 2, 3)]
        self.assertEqual([rank.result() for rank in ranks], [ID] * 3)
        server.result()

    def test_a_stranger_gets_nothing_and_stops_nobody(self) -> None:
        server = self.serve(2)
        with socket.create_connection(self.address) as stranger:
            stranger.recv(32)
            stranger.sendall(b"\0\0\0\1" + bytes(32))
            self.assertEqual(stranger.recv(1), b"")
        with socket.create_connection(self.address):  # ends at once
            pass
        self.assertEqual(self.fetch(1).result(), ID)
        server.result()

    def test_a_stranger_that_sends_a_byte_now_and_then_has_no_more_time_than_others(self) -> None:
        with mock.patch.object(_meeting, "_CONNECTION_SECONDS", 0.3):
            server = self.serve(2)
            with socket.create_connection(self.address) as stranger:
                drips = self.pool.submit(self.drip, stranger)
                self.assertEqual(self.fetch(1, seconds=2).result(), ID)
                server.result()
            drips.result()

    @staticmethod
    def drip(stranger: socket.socket) -> None:
        """Sends an answer so slowly that each byte comes in time, and the whole answer takes four seconds."""
        with suppress(OSError):
            for _ in range(40):
                stranger.sendall(b"x")
                time.sleep(0.1)

    def test_an_answer_fits_its_own_challenge_alone(self) -> None:
        self.assertNotEqual(_meeting._answer(b"a" * 32, 1), _meeting._answer(b"b" * 32, 1))
        first = _meeting._answer(b"a" * 32, 1)
        self.set_token("another secret")
        self.assertNotEqual(_meeting._answer(b"a" * 32, 1), first)

    def test_rank_0_names_the_ranks_that_did_not_come(self) -> None:
        server = self.serve(3, seconds=0.2)
        self.assertEqual(self.fetch(2).result(), ID)
        with self.assertRaisesRegex(TributaryError, r"the ranks \[1\] did not ask"):
            server.result()

    def test_a_rank_without_rank_0_says_where_it_looked(self) -> None:
        self.listener.close()
        with self.assertRaisesRegex(TributaryError, f"127.0.0.1:{self.address[1]}.*MASTER_ADDR"):
            self.fetch(1, seconds=0.2).result()


if __name__ == "__main__":
    unittest.main()
