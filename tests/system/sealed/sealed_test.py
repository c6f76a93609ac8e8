#!/usr/bin/env python3
"""Sealed connections over TCP and UDP between real processes.

    sealed_test.py REPOSITORY BUILD

A reader of the loopback interface looks for frames, tokens and gradients. A relay between the ranks and their aggregator
changes one bit.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import Daemons  # noqa: E402: the line above finds it
from free_ports import free_port  # noqa: E402
from packet_reader import PROBE_BYTES, PayloadReader  # noqa: E402

LIMIT_SECONDS = 120.0
SKIPPED = 77
RIGHT = "# Out of bounds values : 0 OK"
MESSAGE = b"TRBM"
STEPS = bytes(7 * step % 256 for step in range(PROBE_BYTES))  # tributary-nccl-check fills messages in steps of 7
FLIPPED_AT = 3_000_000  # bytes of one connection before the byte that a relay changes


class Relay:
    """Passes bytes on in both directions, and changes one bit of the bytes to each rank, or to the aggregator. All ranks get
    results in step, so rank 0, which logs the reason, gets its changed record before it can hear of another rank's changed
    record."""

    def __init__(self, at: tuple[str, int], to: tuple[str, int], to_aggregator: bool = False) -> None:
        self.to, self.to_aggregator, self.flipped = to, to_aggregator, threading.Event()
        self.listener = socket.create_server(at)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.to)
            threading.Thread(target=self.move, args=(client, server, self.to_aggregator), daemon=True).start()
            threading.Thread(target=self.move, args=(server, client, not self.to_aggregator), daemon=True).start()

    def move(self, source: socket.socket, sink: socket.socket, changes: bool) -> None:
        passed = 0
        try:
            while piece := bytearray(source.recv(1 << 16)):
                if changes and passed <= FLIPPED_AT < passed + len(piece):
                    self.flipped.set()
                    piece[FLIPPED_AT - passed] ^= 1
                passed += len(piece)
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        source.close()  # the other thread closes the other end


class Sealed(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.command = str(self.build / "client/cli/tributary")

    def environment(self, **more: str) -> dict[str, str]:
        return super().environment(**{"TRIBUTARY_SHM": "off", "TRIBUTARY_LOCAL": "off"} | more)

    def ranks(self, count: int, command: list[str], of_rank: dict[int, str] | None = None, **more: str) -> tuple[int, str]:
        """Runs the command in this number of ranks. Returns the number of ranks that failed, and what all ranks printed."""
        port = str(free_port())
        processes = []
        for rank in range(count):
            security = {"TRIBUTARY_SECURITY": of_rank[rank]} if of_rank else {}
            environment = self.environment(RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **more, **security)
            processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        printed = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in processes]
        return sum(process.returncode != 0 for process in processes), "\n".join(printed)

    def perf(self, size: str, times: str = "3") -> list[str]:
        return [self.command, "perf", "all_reduce", "-b", size, "-e", size, "-n", times, "-w", "1", "-c", "1"]

    def seen(self, security: str, transport: str) -> dict[str, bool]:
        """Returns the kinds of data that a reader of the network finds while ranks reduce through two levels, and
        without trees."""
        found = {"frames": False, "tokens": False, "gradients": False}
        for trees in (["--aggregators", "3", "--levels", "2"], ["--aggregators", "0"]):
            path = "in-network" if trees[1] != "0" else "fallback"
            reader = PayloadReader("lo")
            try:
                ended = self.tributary("run", "--ranks", "4", *trees, "--", *self.perf("1048576", "1"), TRIBUTARY_SECURITY=security, TRIBUTARY_PATH=path, TRIBUTARY_TRANSPORT=transport)
            finally:
                captured = reader.payloads()
            self.assertIn(RIGHT, ended.stdout, ended.stderr)
            self.assertGreater(len(captured), 4 << 20, "the reader has seen the vectors pass")
            if transport == "udp":
                self.assertGreater(sum(map(len, reader.udp)), 4 << 20, "over UDP")
            found = {kind: seen or found[kind] for kind, seen in reader.kinds().items()}
        return found

    def test_a_reader_of_the_network_finds_nothing_where_it_is_encrypted(self) -> None:
        for transport in ("tcp", "udp"):
            with self.subTest(transport):
                self.assertEqual(self.seen("off", transport), {"frames": True, "tokens": True, "gradients": True})
                self.assertEqual(self.seen("authenticate", transport), {"frames": True, "tokens": True, "gradients": True})
                self.assertEqual(self.seen("encrypt", transport), {"frames": False, "tokens": False, "gradients": False})

    def messages_seen(self, security: str) -> dict[str, bool]:
        """Returns what a reader of the network finds of the messages between two ranks of NCCL, over one socket with the
        setting in a variable, and over several sockets with the setting in libtributary's file."""
        found = {"heads": False, "payloads": False}
        file = self.folder / "client.yaml"
        file.write_text(f"security: {security}\n")
        for threads, setting in (("0", {"TRIBUTARY_SECURITY": security}), ("2", {"TRIBUTARY_CONFIG": str(file)})):
            reader = PayloadReader("lo")
            try:
                environment = self.environment(TRIBUTARY_IFNAME="lo", NCCL_SOCKET_NTHREADS=threads, NCCL_NSOCKS_PERTHREAD=threads, **setting)
                ended = subprocess.run([str(self.check), "--plugin", str(self.plugin), "--ranks", "2", "--connections", "1", "--without-collnet"],
                                       env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
            finally:
                captured = reader.payloads()
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
            self.assertGreater(len(captured), 8 << 20, "the reader has seen the messages pass")
            found["heads"] |= captured.count(MESSAGE) > 10
            found["payloads"] |= captured.count(STEPS) > 10
        return found

    def test_a_reader_of_the_network_finds_no_message_of_nccl_where_it_is_encrypted(self) -> None:
        self.check, self.plugin = self.build / "client/cli/nccl_check/tributary-nccl-check", self.build / "client/plugins/nccl/libnccl-net-tributary.so"
        if not self.check.exists() or not self.plugin.exists():
            self.skipTest("this build has no NCCL plugin")
        self.assertEqual(self.messages_seen("off"), {"heads": True, "payloads": True})
        self.assertEqual(self.messages_seen("authenticate")["payloads"], True)
        self.assertEqual(self.messages_seen("encrypt"), {"heads": False, "payloads": False})

    def test_ranks_with_different_settings_are_told_what_to_set(self) -> None:
        for of_rank_1, setting in (("off", "encrypt"), ("encrypt", "off"), ("authenticate", "encrypt")):
            failed, printed = self.ranks(2, self.perf("8"), {0: setting, 1: of_rank_1}, TRIBUTARY_TIMEOUT="5", TRIBUTARY_PATH="fallback")
            self.assertEqual(failed, 2, printed)
            self.assertRegex(printed, "set (the same )?TRIBUTARY_SECURITY", (of_rank_1, setting))

    def test_an_aggregator_serves_no_group_with_less_security(self) -> None:
        manager = self.start("manager", "tree-manager/tributary-manager", f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\n")
        url = f"http://127.0.0.1:{manager['port']}"
        self.start("leaf", "aggregator/tributary-aggregator", f"name: leaf\nmanager: {url}\ntoken_file: {self.folder}/state/aggregator.token\nshared_memory: off\n"
                   f"listen: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nsecurity: encrypt\nstate_file: {self.folder}/leaf.key\n")
        failed, printed = self.ranks(2, self.perf("1024"), TRIBUTARY_PATH="in-network", TRIBUTARY_TIMEOUT="10", TRIBUTARY_MANAGER=url,
                                     TRIBUTARY_TOKEN_FILE=f"{self.folder}/state/job.token")
        self.assertEqual(failed, 2, printed)
        self.assertIn("1 is closed to groups with less security than 'encrypt'; set TRIBUTARY_SECURITY=encrypt on every rank", printed)

    def run_behind_relay(self, to_aggregator: bool) -> tuple[str, str]:
        """Lets ranks reduce through a relay that changes a bit. Returns what they printed, and the aggregator's log."""
        manager = self.start("manager", "tree-manager/tributary-manager",
                             f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\naudit_file: {self.folder}/audit.log\naggregator_lease: 3s\n")
        url = f"http://127.0.0.1:{manager['port']}"
        port = free_port()
        self.start("leaf", "aggregator/tributary-aggregator", f"name: leaf\nmanager: {url}\ntoken_file: {self.folder}/state/aggregator.token\nshared_memory: off\n"
                   f"listen: 127.0.0.1:{port}\nadvertise: 127.0.0.7\nhttp_listen: 127.0.0.1:0\nstate_file: {self.folder}/leaf.key\n")
        relay = Relay(("127.0.0.7", port), ("127.0.0.1", port), to_aggregator)
        self.addCleanup(relay.listener.close)
        failed, printed = self.ranks(3, self.perf("4194304", "6"), TRIBUTARY_SECURITY="encrypt", TRIBUTARY_MANAGER=url, TRIBUTARY_TUNING="off",
                                     TRIBUTARY_TOKEN_FILE=f"{self.folder}/state/job.token")
        log = (self.folder / "leaf.log").read_text()
        self.assertTrue(relay.flipped.is_set(), "the ranks have used the tree: " + printed + log)
        self.assertEqual(failed, 0, printed)
        self.assertIn(RIGHT, printed)
        return printed, log

    def test_a_bit_that_changes_ends_the_connection_and_the_job_goes_on(self) -> None:
        printed, log = self.run_behind_relay(to_aggregator=False)
        self.assertRegex(printed + log, r"record \d+ of the sealed connection to .* is not authentic")

    def test_an_aggregator_and_the_audit_log_name_changed_records(self) -> None:
        self.run_behind_relay(to_aggregator=True)
        log = self.folder / "leaf.log"
        told = r" error .*: lane 0 of group .*: record \d+ of the sealed connection to .* is not authentic"
        self.wait_until(lambda: re.search(told, log.read_text()), "the aggregator logs no changed record: " + log.read_text())
        audit = self.folder / "audit.log"
        self.wait_until(lambda: "changed-records" in audit.read_text(), "the audit log has no changed record: " + audit.read_text())
        line = next(json.loads(line) for line in audit.read_text().splitlines() if "changed-records" in line)
        self.assertEqual((line["path"], line["outcome"], line["code"]), ("/v1/aggregators/leaf/lease", "done", "changed-records"))
        self.assertRegex(line["why"], r"\d+ sealed connections ended because bytes were changed on their way")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("only root can read the loopback interface")
        sys.exit(SKIPPED)
    if "TRIBUTARY_TEST_NAMESPACE" not in os.environ:
        # Use a separate loopback interface: other tests send frames in clear over the host's loopback interface.
        os.execvpe("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B", *sys.argv],
                   os.environ | {"TRIBUTARY_TEST_NAMESPACE": "own"})
    Sealed.root, Sealed.build = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
