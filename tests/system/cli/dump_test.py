#!/usr/bin/env python3
"""`tributary dump` says which rank has not called an operation, while the job hangs and after it has failed.

    dump_test.py TRIBUTARY RANK_PROCESS
"""

import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

LIMIT_SECONDS = 60.0
RANKS = 4
ABSENT = 2
OTHERS = [0, 1, 3]


class Dump(unittest.TestCase):
    tributary = rank_process = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.ports = self.folder / "ports"
        self.files = self.folder / "files"
        self.files.mkdir()
        self.processes: list[subprocess.Popen] = []

    def start(self, rank: int, scenario: str, arguments: tuple[str, ...], **variables: str) -> subprocess.Popen:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        environment |= {"TRIBUTARY_STATUS_DIR": str(self.ports), "TRIBUTARY_FLIGHT_RECORD": str(self.files), "TRIBUTARY_JOB": "training", "TRIBUTARY_LOG": "off"}
        process = subprocess.Popen([self.rank_process, str(rank), str(RANKS), "60000", scenario, *arguments],
                                   stdout=subprocess.PIPE, text=True, env=environment | variables)

        def end() -> None:
            process.kill()
            process.wait(timeout=LIMIT_SECONDS)
            process.stdout.close()

        self.addCleanup(end)
        self.processes.append(process)
        return process

    def hang(self, **variables: str) -> None:
        """Starts ranks that reduce, and one rank that makes no further call."""
        identity = self.start(0, "reduce", (), **variables).stdout.readline().split()[1]
        for rank in range(1, RANKS):
            self.start(rank, "absent" if rank == ABSENT else "reduce", (identity,), **variables)
        for process in self.processes:
            self.assertEqual(process.stdout.readline(), "ready\n")

    def dump(self, *arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([self.tributary, "dump", "--dir", folder or self.ports, *map(str, arguments)],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)

    def groups(self, folder: Path | None = None) -> list[dict]:
        dumped = self.dump("--form", "json", folder=folder)
        return json.loads(dumped.stdout)["groups"] if dumped.returncode == 0 else []

    def wait_until(self, condition, what: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)  # how often to look; no result depends on it

    def wait_for_the_hang(self) -> dict:
        def hangs() -> bool:
            found = self.groups()
            return bool(found) and found[0]["verdict"]["waiting"] == OTHERS and found[0]["verdict"]["not_called"] == [ABSENT]

        self.wait_until(hangs, "the dump does not name the rank")
        groups = self.groups()
        self.assertEqual(len(groups), 1)
        return groups[0]

    def check_the_hang(self, path: str) -> None:
        group = self.wait_for_the_hang()
        self.assertEqual((group["job"], group["ranks"], len(group["records"])), ("training", RANKS, RANKS))
        verdict = group["verdict"]
        self.assertEqual((verdict["operation"], verdict["call"], verdict["no_record"]), (1, "all_reduce of 1048576 float32 (sum)", []))
        for record in group["records"]:
            barrier, *rest = record["operations"]
            self.assertEqual((barrier["number"], barrier["call"], barrier["outcome"]), (0, "barrier", "success"))
            self.assertLessEqual(barrier["queued_ns"], barrier["ended_ns"])
            self.check_bytes(barrier, path)
            if record["rank"] == ABSENT:
                self.assertEqual((record["called"], rest), (1, []))
                continue
            self.assertEqual((record["called"], len(rest)), (2, 1))
            self.assertEqual((rest[0]["outcome"], rest[0]["path"], rest[0]["bytes"], rest[0]["ended_ns"]), ("open", path, 4 << 20, None))
        text = self.dump().stdout
        self.assertIn("operation 1 (all_reduce of 1048576 float32 (sum)) has not ended after", text)
        self.assertIn(f"rank {ABSENT} has not called it; its last call was operation 0 (barrier), which ended", text)
        self.assertIn("ranks 0-1, 3 wait\n", text)

    def check_bytes(self, operation: dict, path: str) -> None:
        first, last = operation["first_byte_ns"], operation["last_byte_ns"]
        if path == "shared memory":
            self.assertEqual((first, last), (None, None))
            return
        self.assertLessEqual(operation["started_ns"], first)
        self.assertLessEqual(first, last)
        self.assertLessEqual(last, operation["ended_ns"])

    def test_names_the_rank_that_has_not_called_in_shared_memory(self) -> None:
        self.hang()
        self.check_the_hang("shared memory")

    def test_names_the_rank_that_has_not_called_between_the_ranks(self) -> None:
        self.hang(TRIBUTARY_LOCAL="off")
        self.check_the_hang("between ranks")

    def test_a_stopped_rank_hides_no_other_rank(self) -> None:
        self.hang()
        self.wait_for_the_hang()
        self.processes[ABSENT].send_signal(signal.SIGSTOP)
        dumped = self.dump()
        self.processes[ABSENT].send_signal(signal.SIGCONT)
        self.assertIn("it has not answered within 2 s", dumped.stderr)
        self.assertIn(f"no record of rank {ABSENT}:", dumped.stdout)
        self.assertIn("ranks 0-1, 3 wait\n", dumped.stdout)

    def test_writes_files_when_a_rank_is_killed(self) -> None:
        self.hang()
        self.wait_for_the_hang()
        self.processes[ABSENT].kill()
        for rank in OTHERS:
            self.assertRegex(self.processes[rank].stdout.readline(), "^end -[1-9]")
            self.processes[rank].wait(timeout=LIMIT_SECONDS)
        self.assertEqual(len(list(self.files.iterdir())), len(OTHERS))
        for file in self.files.iterdir():
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        dumped = self.dump(folder=self.files).stdout
        self.assertIn(f"no record of rank {ABSENT}:", dumped)
        self.assertRegex(dumped, f"rank 0 has failed: .*rank {ABSENT}")
        self.assertIn("operation 1 (all_reduce of 1048576 float32 (sum)) has not ended after", dumped)
        self.assertIn("its process has ended", self.dump().stderr)  # the port of the killed rank
        self.assertEqual(len(list(self.ports.iterdir())), 1)

    def test_a_new_process_removes_the_ports_of_killed_ones(self) -> None:
        self.hang()
        for process in self.processes:
            process.send_signal(signal.SIGSTOP)  # else a rank that lives longest may end by itself, and remove its port
        for process in self.processes:
            process.kill()
            process.wait(timeout=LIMIT_SECONDS)
        killed = set(self.ports.iterdir())
        self.assertEqual(len(killed), RANKS)
        self.processes.clear()
        self.hang()
        self.assertFalse(killed & set(self.ports.iterdir()))

    def test_writes_files_for_the_analyzer_of_pytorch(self) -> None:
        self.hang()
        self.wait_for_the_hang()
        into = self.folder / "into"
        self.assertEqual(self.dump("--form", "fr_trace").returncode, 64)
        self.assertEqual(self.dump("--form", "fr_trace", "--into", into).returncode, 0)
        (folder,) = into.iterdir()
        self.assertEqual(sorted(file.name for file in folder.iterdir()), [f"rank_{rank}" for rank in range(RANKS)])
        document = pickle.loads((folder / "rank_0").read_bytes())
        self.assertEqual(document["pg_config"]["0"]["ranks"], "[0, 1, 2, 3]")
        self.assertEqual([entry["state"] for entry in document["entries"]], ["completed", "started"])
        self.assertEqual(document["entries"][1]["profiling_name"], "nccl:all_reduce")
        self.assertEqual(document["entries"][1]["input_sizes"], [[1 << 20]])
        self.assertIsNone(document["entries"][1]["time_discovered_completed_ns"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can act as another user")
    def test_another_user_gets_no_answer(self) -> None:
        self.hang()
        port = next(iter(self.ports.iterdir()))
        self.assertEqual((self.ports.stat().st_mode & 0o777, port.stat().st_mode & 0o777), (0o700, 0o600))
        for place, mode in ((self.folder, 0o711), (self.ports, 0o711), (port, 0o666)):
            place.chmod(mode)  # the port itself must look who asks
        self.assertIn(b"job training", self.ask(port, user=0))
        self.assertEqual(self.ask(port, user=65534), b"")

    @staticmethod
    def ask(port: Path, user: int) -> bytes:
        """Asks in a process of that user."""
        program = (f"import os, socket, sys\nos.setuid({user})\ns = socket.socket(socket.AF_UNIX)\ns.connect({str(port)!r})\n"
                   "try:\n    s.sendall(b'status\\n')\n    sys.stdout.buffer.write(s.recv(65536))\nexcept (BrokenPipeError, ConnectionResetError):\n    pass\n")
        return subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=LIMIT_SECONDS, check=True).stdout

    def test_shows_only_the_rank_that_has_not_called(self) -> None:
        self.hang()
        self.wait_for_the_hang()
        self.wait_until(lambda: "has not called" in self.dump("--only-late").stdout, "--only-late does not name the rank")
        lines = self.dump("--only-late").stdout.splitlines()
        self.assertRegex(lines[0], "^job training, group [0-9a-f]+: ranks 0-1, 3 wait$")
        self.assertRegex(lines[1], r"^  operation 1 \(all_reduce of 1048576 float32 \(sum\)\) has not ended after [0-9.]+ s$")
        self.assertRegex(lines[2], rf"^  rank {ABSENT} has not called it; its last call was operation 0 \(barrier\), which ended [0-9.]+ s ago$")
        self.assertEqual(len(lines), 3)
        (group,) = json.loads(self.dump("--only-late", "--form", "json").stdout)["groups"]
        self.assertEqual([record["rank"] for record in group["records"]], [ABSENT])
        self.assertEqual(self.dump("--only-late", "--form", "fr_trace", "--into", self.folder / "x").returncode, 64)

    def test_the_table_has_ages_in_seconds(self) -> None:
        self.hang()
        self.wait_for_the_hang()
        heading, *rows = self.dump("--last", 1).stdout.splitlines()[-1 - RANKS:]
        self.assertRegex(heading, r"QUEUED \(s ago\)  STARTED \(s ago\)  FIRST BYTE \(s ago\)  LAST BYTE \(s ago\)  ENDED \(s ago\)$")
        for row in rows:
            queued = float(row[heading.index("QUEUED"):].split()[0])
            self.assertGreaterEqual(queued, 0)
            self.assertLess(queued, LIMIT_SECONDS)

    def test_answers_lines(self) -> None:
        self.hang()
        self.wait_for_the_hang()
        port = next(iter(self.ports.iterdir()))
        for line, expected in (("status", "job training, group "), ("dump", "  operation 0 (barrier), path shared memory, success"), ("what", "unknown line")):
            with socket.socket(socket.AF_UNIX) as asking:
                asking.connect(str(port))
                asking.sendall(line.encode() + b"\n")
                with asking.makefile() as answer:
                    self.assertIn(expected, answer.read())

    def test_compares_the_records_that_several_hosts_have_saved(self) -> None:
        shared = self.folder / "shared"
        hosts = {name: self.folder / name for name in ("alpha", "beta")}
        of_rank = [{"TRIBUTARY_STATUS_DIR": str(folder)} for folder in (hosts["alpha"], hosts["alpha"], hosts["beta"], hosts["beta"])]
        identity = self.start(0, "reduce", (), **of_rank[0]).stdout.readline().split()[1]
        for rank in range(1, RANKS):
            self.start(rank, "absent" if rank == ABSENT else "reduce", (identity,), **of_rank[rank])
        for process in self.processes:
            self.assertEqual(process.stdout.readline(), "ready\n")
        called = lambda folder: [record["rank"] for group in self.groups(folder=folder) for record in group["records"] if record["called"] == 2]
        self.wait_until(lambda: called(hosts["alpha"]) + called(hosts["beta"]) == OTHERS, "the ranks do not wait")
        for name, folder in hosts.items():
            saved = subprocess.run([self.tributary, "dump", "--dir", folder, "--save", shared], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
                                   env=os.environ | {"TRIBUTARY_HOST_ID": name})
            self.assertEqual((saved.returncode, saved.stderr, saved.stdout), (0, "", f"2 records are in {shared}\n"))
        self.assertEqual(len(list(shared.iterdir())), RANKS)
        (group,) = self.groups(folder=shared)
        self.assertEqual((group["verdict"]["not_called"], group["verdict"]["waiting"], group["verdict"]["no_record"]), ([ABSENT], OTHERS, []))
        self.assertEqual(self.dump("--save", "/proc/nowhere", folder=hosts["alpha"]).returncode, 1)
        self.assertEqual(self.dump("--save", shared, "--job", "training", folder=hosts["alpha"]).returncode, 64)

    def test_shows_for_whom_an_aggregator_waits(self) -> None:
        command = f'echo "$TRIBUTARY_MANAGER" > {self.folder}/url; echo $$ > {self.folder}/pid-$RANK; exec {self.tributary} perf all_reduce -b 64K -e 64K -n 100000000 -w 1 -c 0'
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        environment |= {"TRIBUTARY_STATUS_DIR": str(self.ports), "TRIBUTARY_LOCAL": "off", "TRIBUTARY_TUNING": "off", "TRIBUTARY_JOB": "training"}
        run = subprocess.Popen([self.tributary, "run", "--ranks", "3", "--aggregators", "1", "--", "sh", "-c", command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait, LIMIT_SECONDS)
        self.addCleanup(run.terminate)
        self.wait_until(lambda: any(record["operations"] and record["operations"][-1]["path"] == "in-network" for group in self.groups() for record in group["records"]), "the ranks do not use the tree")
        late = int((self.folder / "pid-1").read_text())
        os.kill(late, signal.SIGSTOP)
        self.addCleanup(os.kill, late, signal.SIGCONT)
        manager = ("--manager", (self.folder / "url").read_text().strip())
        expected = r"^aggregator aggregator-0, lane 0 of group [0-9]+: a segment has waited for rank 1 for [0-9.]+ s$"
        self.wait_until(lambda: re.search(expected, self.dump(*manager).stdout, re.MULTILINE), "the dump does not show for whom the aggregator waits")
        for record in self.groups()[0]["records"]:
            ended = [o for o in record["operations"] if (o["outcome"], o["path"]) == ("success", "in-network")]
            self.assertTrue(ended)
            for operation in ended:
                self.check_bytes(operation, "in-network")
        (wait,) = json.loads(self.dump("--form", "json", *manager).stdout)["aggregators_wait"]
        self.assertEqual((wait["aggregator"], wait["lane"], wait["waits_for"]), ("aggregator-0", 0, ["rank 1"]))
        self.assertIn("no answer from aggregators of job 'training': ", self.dump("--manager", "http://127.0.0.1:1").stderr)

    def test_says_that_nothing_is_there(self) -> None:
        self.ports.mkdir()
        dumped = self.dump("--job", "other")
        self.assertEqual(dumped.returncode, 1)
        self.assertIn("no rank of job 'other' has a status port", dumped.stderr)

    def test_a_folder_that_others_can_write_to_gets_no_port(self) -> None:
        self.ports.mkdir()
        self.ports.chmod(0o777)
        self.hang()
        self.assertEqual(list(self.ports.iterdir()), [])


if __name__ == "__main__":
    Dump.tributary, Dump.rank_process = (Path(argument) for argument in sys.argv[1:3])
    del sys.argv[1:]
    unittest.main(verbosity=1)
