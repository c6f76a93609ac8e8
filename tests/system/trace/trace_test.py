#!/usr/bin/env python3
"""`tributary trace` records what ranks and aggregators do, and writes a trace that a strict reader takes.

    trace_test.py REPOSITORY BUILD
"""

import json
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

MANAGER = "listen: 127.0.0.1:0\nwindow: 8\nsegment_bytes: 64KiB\nretry_after: 1s\n"
AHEAD_SECONDS = 1000
AHEAD = ("unshare", "--time", "--monotonic", str(AHEAD_SECONDS), "--")  # runs a program whose steady clock is ahead
MOMENTS_OF_A_FLOW = ["contribution", "contribution", "sum up", "contribution", "results down", "result", "results down", "result"]


def has_times_of_its_own(before: tuple[str, ...]) -> bool:
    program = "import time; print(time.clock_gettime(time.CLOCK_MONOTONIC))"
    ended = subprocess.run([*before, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return ended.returncode == 0 and float(ended.stdout) > time.clock_gettime(time.CLOCK_MONOTONIC) + AHEAD_SECONDS / 2


class Trace:
    """The events of a file, read strictly: other events, times or flows than the format allows are errors."""

    def __init__(self, test: unittest.TestCase, file: Path) -> None:
        document = json.loads(file.read_text(), parse_constant=test.fail)
        test.assertEqual(set(document), {"displayTimeUnit", "otherData", "traceEvents"})
        self.notes: list[str] = document["otherData"]["notes"]
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.slices: dict[tuple[int, int], list[dict]] = defaultdict(list)
        self.flows: dict[int, list[tuple[str, dict]]] = defaultdict(list)  # by id: the phase, and the slice that it is bound to
        for event in document["traceEvents"]:
            self.take(test, event)
        for number, points in self.flows.items():
            points.sort(key=lambda point: "stf".index(point[0]))
            test.assertEqual([phase for phase, _ in points], ["s", *["t"] * (len(points) - 2), "f"], f"flow {number}")

    def take(self, test: unittest.TestCase, event: dict) -> None:
        thread = event["pid"], event["tid"]
        if event["ph"] == "M":
            if event["name"] == "process_name":
                test.assertNotIn(event["pid"], self.processes)
                self.processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                test.assertNotIn(thread, self.threads)
                self.threads[thread] = event["args"]["name"]
            else:
                test.assertEqual(event["name"], "process_sort_index")
            return
        test.assertIn(event["pid"], self.processes)
        test.assertIn(thread, self.threads)
        slices = self.slices[thread]
        if event["ph"] == "X":
            test.assertEqual(set(event), {"ph", "pid", "tid", "ts", "dur", "cat", "name", "args"})
            test.assertGreater(event["dur"], 0)
            if slices:
                test.assertGreaterEqual(event["ts"], slices[-1]["ts"])
                test.assertGreaterEqual(event["ts"] - slices[-1]["ts"] - slices[-1]["dur"], -0.0005, "two slices overlap")
            slices.append(event)
            return
        test.assertIn(event["ph"], ("s", "t", "f"))
        test.assertEqual(event["ph"] == "f", event.get("bp") == "e")
        test.assertEqual(event["ts"], slices[-1]["ts"], "a flow is bound to no slice")
        self.flows[event["id"]].append((event["ph"], slices[-1]))

    def operations(self, process: str) -> list[dict]:
        return [one for (pid, _), slices in self.slices.items() if self.processes[pid] == process for one in slices if one["cat"] == "operation"]

    def in_all_recordings(self) -> list[int]:
        """Returns the flows of segments that began and ended while all processes recorded: each process begins and ends its recording at a time of its own."""
        moments: dict[int, list[float]] = defaultdict(list)
        longest = 0.0
        for (pid, _), slices in self.slices.items():
            moments[pid] += [one["ts"] for one in slices if one["cat"] == "segment"]
            longest = max([longest, *(one["dur"] for one in slices if one["cat"] == "operation")])
        begin = max(min(times) for times in moments.values())
        end = min(max(times) for times in moments.values()) - longest
        return [number for number, points in self.flows.items() if begin < points[0][1]["ts"] < end]

    def way(self, number: int) -> list[str]:
        """Returns the names of the processes that the flow goes through, in the order of their times."""
        points = sorted((point for _, point in self.flows[number]), key=lambda point: point["ts"])
        return [self.processes[point["pid"]] for point in points]


class Traces(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.ports = self.folder / "ports"
        self.file = self.folder / "trace.json"

    def start_manager(self) -> None:
        ready = self.start("manager", "tree-manager/tributary-manager", MANAGER + f"state_directory: {self.folder}/state\n")
        self.url = f"http://127.0.0.1:{ready['port']}"

    def start_aggregator(self, name: str, before: tuple[str, ...] = ()) -> str:
        """Returns the address of its pages."""
        ready = self.start(name, "aggregator/tributary-aggregator", f"name: {name}\nmanager: {self.url}\ntoken_file: {self.folder}/state/aggregator.token\n"
                           f"host_id: beside-{name}\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nworkers: 2\nstate_file: {self.folder}/{name}.key\n", before)
        return f"http://127.0.0.1:{ready['http']['port']}"

    def start_ranks(self, ranks: int, path: str = "in-network", of_a_host: int = 1, **of_last: str) -> None:
        """Starts ranks that reduce for ever, and waits until they take the path; the last one has these variables too."""
        identity = ()
        processes = []
        for rank in range(ranks):
            environment = self.environment(
                TRIBUTARY_MANAGER=self.url, TRIBUTARY_TOKEN_FILE=f"{self.folder}/state/job.token", TRIBUTARY_JOB="training", TRIBUTARY_HOST_ID=f"node-{rank // of_a_host}",
                TRIBUTARY_STATUS_DIR=str(self.ports), TRIBUTARY_LOCAL="off" if of_a_host == 1 else "auto", TRIBUTARY_TUNING="off", TRIBUTARY_LOG="warn")
            process = subprocess.Popen([self.build / "tests/system/client/client_rank_process", str(rank), str(ranks), "60000", "reduce", *identity],
                                       stdout=subprocess.PIPE, text=True, env=environment | (of_last if rank == ranks - 1 else {}))

            def end(process: subprocess.Popen = process) -> None:
                process.kill()
                process.wait(timeout=LIMIT_SECONDS)
                process.stdout.close()

            self.addCleanup(end)
            if rank == 0:
                identity = (process.stdout.readline().split()[1],)
            processes.append(process)
        for process in processes:
            self.assertEqual(process.stdout.readline(), "ready\n")
        self.wait_until(lambda: self.reduces(path), "the ranks do not use the tree")

    def reduces(self, path: str) -> bool:
        dumped = self.tributary("dump", "--dir", str(self.ports), "--form", "json")
        if dumped.returncode != 0:
            return False
        records = [record for group in json.loads(dumped.stdout)["groups"] for record in group["records"]]
        return bool(records) and all(record["operations"] and record["operations"][-1]["path"] == path for record in records)

    def seconds_of_operations(self, number: int) -> float:
        """Returns the time that this many operations take, by the longest of the last ones: a trace of a slow build on a busy machine must be longer."""
        dumped = json.loads(self.tributary("dump", "--dir", str(self.ports), "--form", "json").stdout)
        last = [one for group in dumped["groups"] for record in group["records"] for one in record["operations"][-10:] if one["outcome"] == "success"]
        return number * max(one["ended_ns"] - one["queued_ns"] for one in last) / 1e9

    def trace(self, *arguments: str) -> subprocess.CompletedProcess:
        return self.tributary("trace", "--seconds", str(min(max(self.seconds_of_operations(20), 0.3), 10)), "--dir", str(self.ports), "--into", str(self.file), *arguments, TRIBUTARY_MANAGER=self.url)

    def test_segments_flow_from_the_ranks_to_the_root_and_back(self) -> None:
        command = f'echo "$TRIBUTARY_MANAGER" > {self.folder}/url; exec {self.build}/client/cli/tributary perf all_reduce -b 256K -e 256K -n 100000000 -w 1 -c 0'
        environment = self.environment(TRIBUTARY_STATUS_DIR=str(self.ports), TRIBUTARY_LOCAL="off", TRIBUTARY_TUNING="off", TRIBUTARY_JOB="training")
        run = subprocess.Popen([self.build / "client/cli/tributary", "run", "--ranks", "4", "--aggregators", "3", "--levels", "2", "--lanes", "2", "--", "sh", "-c", command],
                               env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait, LIMIT_SECONDS)
        self.addCleanup(run.terminate)
        self.wait_until(lambda: self.ports.exists() and self.reduces("in-network"), "the ranks do not use the trees")
        self.url = (self.folder / "url").read_text().strip()
        traced = self.trace("--job", "training")
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertEqual(traced.stderr, "")
        self.assertRegex(traced.stdout, "^ranks: 4, aggregators: 3, operations: [0-9]+, segments: [0-9]+, messages: [0-9]+\n")
        trace = Trace(self, self.file)
        self.assertIn("all processes read the same clock", trace.notes)
        ranks = [name for name in trace.processes.values() if name.startswith("rank ")]
        aggregators = [name for name in trace.processes.values() if name.startswith("aggregator ")]
        self.assertEqual((len(ranks), len(aggregators)), (4, 3))
        for rank in ranks:
            operations = trace.operations(rank)
            self.assertGreater(len(operations), 1)
            self.assertEqual({one["name"] for one in operations} - {"barrier"}, {"all_reduce of 65536 float32 (sum)"})
            self.assertEqual({one["args"]["path"] for one in operations}, {"in-network"})
        lanes = {name.split(",")[0] for name in trace.threads.values() if name.startswith("lane ")}
        self.assertEqual(lanes, {"lane 0", "lane 1"})
        begun = set()
        whole = 0
        flows = trace.in_all_recordings()
        for number in flows:
            way = trace.way(number)
            if len(way) == 4 and way[0] == way[3] and way[1] == way[2]:  # on a busy machine the trees may have lost an aggregator: this one has one level
                begun.add(way[0])
                whole += 1
                continue
            if len(way) != len(MOMENTS_OF_A_FLOW):
                continue  # a process has recorded a part of it
            whole += 1
            rank, leaf, leaf_up, root, root_down, leaf_back, leaf_down, end = way
            begun.add(rank)
            self.assertEqual((rank, leaf, leaf, leaf, root), (end, leaf_up, leaf_back, leaf_down, root_down))
            self.assertEqual(len({rank, leaf, root}), 3)
            names = [" ".join(point["name"].split()[:-1]) for point in sorted((point for _, point in trace.flows[number]), key=lambda point: point["ts"])]
            self.assertEqual(names, MOMENTS_OF_A_FLOW)
        self.assertGreater(whole, len(flows) * 9 // 10)
        self.assertEqual(begun, set(ranks))

    def test_messages_between_ranks_flow_from_rank_to_rank(self) -> None:
        self.start_manager()
        self.start_ranks(3, path="between ranks")
        traced = self.trace()
        self.assertEqual((traced.returncode, traced.stderr), (0, ""))
        self.assertRegex(traced.stdout, "^ranks: 3, aggregators: 0, operations: [0-9]+, segments: 0, messages: [1-9][0-9]*\n")
        trace = Trace(self, self.file)
        self.assertEqual({name for name in trace.threads.values() if not name.startswith("operations")}, {"messages between ranks, class 0"})
        ways = {tuple(trace.way(number)) for number in trace.flows}
        ring = [f"rank {rank} on node-{rank}" for rank in range(3)]
        self.assertLessEqual(set(zip(ring, [*ring[1:], ring[0]], strict=True)), ways, "a ring sends from each rank to the next one")
        for number in trace.in_all_recordings():
            (_, sent), (_, came) = trace.flows[number]
            self.assertEqual((sent["args"]["operation"], sent["args"]["bytes"]), (came["args"]["operation"], came["args"]["bytes"]))
            self.assertLess(sent["ts"], came["ts"])

    @unittest.skipUnless(has_times_of_its_own(AHEAD), "this system makes no namespace of times for a program")
    def test_messages_tell_the_difference_of_the_clocks_within_the_error(self) -> None:
        self.start_manager()
        self.start_aggregator("far", AHEAD)
        self.start_ranks(2)
        traced = self.trace()
        self.assertEqual((traced.returncode, traced.stderr), (0, ""))
        told = re.search(r"^the clock of host beside-far was ahead by ([0-9.]+) s, with an error of at most ([0-9.]+) (us|ms)$", traced.stdout, re.MULTILINE)
        self.assertIsNotNone(told, traced.stdout)
        error = float(told[2]) / {"us": 1e6, "ms": 1e3}[told[3]]
        self.assertLessEqual(abs(float(told[1]) - AHEAD_SECONDS), error + 1e-6)
        self.assertLess(error, 0.1)
        trace = Trace(self, self.file)
        self.assertTrue(trace.flows)
        last = max(one["ts"] for slices in trace.slices.values() for one in slices)
        self.assertLess(last, 60e6, "the far moments are on the ranks' clock")

    def test_the_segments_of_hosts_are_those_of_their_leaders(self) -> None:
        self.start_manager()
        self.start_aggregator("leaf")
        self.start_ranks(4, path="by hosts", of_a_host=2)

        def leaders() -> set[str]:
            self.assertEqual(self.trace().returncode, 0)
            trace = Trace(self, self.file)
            for rank in range(4):
                self.assertTrue(trace.operations(f"rank {rank} on node-{rank // 2}"))
            return {trace.way(number)[0] for number in trace.flows}

        self.wait_until(lambda: leaders() == {"rank 0 on node-0", "rank 2 on node-1"}, "the leaders do not send to the tree")

    def test_names_aggregators_that_do_not_answer(self) -> None:
        self.start_manager()
        self.start_aggregator("leaf")
        self.start_ranks(2)
        self.processes["leaf"].send_signal(signal.SIGSTOP)
        traced = self.trace()
        self.processes["leaf"].send_signal(signal.SIGCONT)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertRegex(traced.stderr, r"tributary trace: no trace of aggregator leaf \(127\.0\.0\.1:[0-9]+\): .*")
        self.assertRegex(traced.stdout, "^ranks: 2, aggregators: 0, ")
        Trace(self, self.file)

    def test_names_the_host_of_a_rank_that_it_cannot_reach(self) -> None:
        self.start_manager()
        self.start_aggregator("leaf")
        self.start_ranks(2, TRIBUTARY_STATUS_DIR=str(self.folder / "elsewhere"))
        traced = self.trace()
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertRegex(traced.stderr, "^tributary trace: no trace of rank 1 on host node-1 of group [0-9a-f]+: a status port is a socket of its own host; run the command there too\n$")
        trace = Trace(self, self.file)
        self.assertEqual(sorted(trace.processes.values()), ["aggregator leaf on beside-leaf", "rank 0 on node-0"])

    def test_recordings_of_several_hosts_become_one_trace(self) -> None:
        self.start_manager()
        self.start_aggregator("leaf")
        elsewhere = self.folder / "elsewhere"
        self.start_ranks(2, TRIBUTARY_STATUS_DIR=str(elsewhere))
        parts = {folder: self.folder / f"{folder.name}.parts" for folder in (self.ports, elsewhere)}
        seconds = str(min(max(self.seconds_of_operations(20), 1), 10))
        commands = [subprocess.Popen([self.build / "client/cli/tributary", "trace", "--job", "training", "--seconds", seconds, "--dir", folder, "--parts", file],
                                     env=self.environment(TRIBUTARY_MANAGER=self.url), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for folder, file in parts.items()]
        ended = [command.communicate(timeout=2 * LIMIT_SECONDS) for command in commands]
        self.assertEqual([command.returncode for command in commands], [0, 0], ended)
        self.assertEqual(sorted(output.split(" are in ")[0] for output, _ in ended),
                         ["the recordings of 1 processes of ranks and 0 aggregators", "the recordings of 1 processes of ranks and 1 aggregators"], ended)
        merged = self.tributary("trace", "--merge", *map(str, parts.values()), str(parts[self.ports]), "--into", str(self.file))
        self.assertEqual((merged.returncode, merged.stderr), (0, ""))
        self.assertRegex(merged.stdout, "^ranks: 2, aggregators: 1, ")
        trace = Trace(self, self.file)
        self.assertEqual(sorted(trace.processes.values()), ["aggregator leaf on beside-leaf", "rank 0 on node-0", "rank 1 on node-1"])
        ways = {tuple(dict.fromkeys(trace.way(number))) for number in trace.in_all_recordings()}
        self.assertEqual(ways, {(f"rank {rank} on node-{rank}", "aggregator leaf on beside-leaf") for rank in range(2)})
        self.file.write_text("{}")
        refused = self.tributary("trace", "--merge", str(self.file))
        self.assertEqual(refused.returncode, 64)
        self.assertIn(f"{self.file}: it has no recordings of a trace", refused.stderr)

    def test_goes_on_without_a_manager(self) -> None:
        self.start_manager()
        self.start_aggregator("leaf")
        self.start_ranks(2)
        self.url = ""
        traced = self.trace()
        self.assertEqual(traced.returncode, 0, traced.stderr)
        self.assertIn("the trace has no aggregators: no manager is given", traced.stderr)
        self.assertTrue(Trace(self, self.file).flows)
        self.assertEqual(self.trace("--job", "other").returncode, 1)

    def page(self, url: str, method: str = "GET") -> tuple[int, str]:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=LIMIT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def test_an_aggregator_records_one_bounded_trace_at_a_time(self) -> None:
        self.start_manager()
        pages = self.start_aggregator("leaf") + "/v1/trace"
        for query in ("", "?seconds=0", "?seconds=-1", "?seconds=10.5", "?seconds=x", "?seconds=nan", "?number=x"):
            self.assertEqual(self.page(pages + query)[0], 400, query)
        self.assertEqual(self.page(pages + "?number=0")[0], 404)
        self.assertEqual(self.page(pages + "?seconds=1", "POST")[0], 405)
        status, begun = self.page(pages + "?seconds=2&job=a%20job")
        self.assertEqual((status, json.loads(begun)), (200, {"trace": 1, "seconds": 2.0}))
        self.assertEqual(self.page(pages + "?seconds=2")[0], 409)
        self.assertEqual(self.page(pages + "?number=1")[0], 409)
        self.wait_until(lambda: self.page(pages + "?number=1")[0] == 200, "the trace does not end")
        document = json.loads(self.page(pages + "?number=1")[1])
        self.assertEqual((document["aggregator"], document["lanes"], len(document["workers"])), ("leaf", [], 2))
        self.assertEqual(self.page(pages + "?number=2")[0], 404)


if __name__ == "__main__":
    Traces.root, Traces.build = (Path(argument) for argument in sys.argv[1:3])
    del sys.argv[1:]
    unittest.main(verbosity=1)
