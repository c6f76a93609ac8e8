#!/usr/bin/env python3
"""Slow ranks and hangs that are planted among 16 ranks are named in time, with the right cause.

    planted_test.py BUILD [--all] [--within SECONDS] [NAME...]

Each job has 16 ranks. A case makes one of them slow, or lets it hang, and measures the time until the manager's list and
the log of rank 0 name it. The earlier one counts. Without --all it runs the cases of the default test; names choose cases.
The table at the end has the times.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

RANKS, VICTIM = 16, 11
START_SECONDS, NAMED_SECONDS_MAX = 120.0, 20.0
SETTLE_SECONDS = 3.0
# A rank that is silent when the log names it gets a second line once its cause is known. On a busy machine, the rank's neighbours, who find the cause, wait for processors, too.
CAUSE_SECONDS_MAX = 3.0
LINE = re.compile(r"rank (?P<rank>\d+)(?: on host \S+)? is (?:late by (?P<ms>\d+) ms(?:, \d+ operations? behind)?|still late)(?: \((?P<cause>[^)]*)\))?(?:; |\s*$)")
LOST = re.compile(r"not in use: aggregator [^ ,]+|an aggregator hangs")
CAUSES = {"late-call": "it begins its operations late", "slow-data": "its data come slowly", "silent": "nothing comes from it",
          "no-cpu": "its thread waits for a processor", "not-called": "it has not called the operation"}


@dataclass
class Shape:
    """How a job runs: the options of `tributary run`, variables, and the arguments of each rank behind its folder."""

    options: list[str]
    variables: dict[str, str]
    work: list[str]  # elements, work, rest, sleep in ms
    ready: str  # text in rank 0's log once the ranks use the path
    ranks_by_host: int = 0  # the names of the hosts change after so many ranks; 0: one host
    hog: int = -20  # how nice the process is that takes the rank's processor


TREE = ["--ranks", str(RANKS), "--aggregators", "5", "--levels", "2"]
LINKS = ["--hosts", str(RANKS), "--link", "200Mbit", "--aggregators", "5", "--levels", "2"]
IN_USE = "in-network reduction in use"
WITH_MANAGER = ("tree", "links")  # shapes whose manager knows the rank itself
SHAPES = {
    "tree": Shape(TREE, {"TRIBUTARY_LOCAL": "off", "TRIBUTARY_TUNING": "off"}, ["4096", "4", "80", "800"], IN_USE),
    "links": Shape(LINKS, {"TRIBUTARY_TUNING": "off"}, ["524288", "2", "200", "1500"], IN_USE),
    "ranks": Shape(["--ranks", str(RANKS), "--aggregators", "0"], {"TRIBUTARY_LOCAL": "off"}, ["4096", "4", "80", "5000"], "no manager"),
    "hosts": Shape(TREE, {"TRIBUTARY_TUNING": "off"}, ["4096", "4", "80", "5000"], IN_USE, ranks_by_host=4),
    "memory": Shape(["--ranks", str(RANKS), "--aggregators", "0"], {}, ["4096", "4", "80", "5000"], "in shared memory"),
}


@dataclass
class Case:
    shape: str
    plant: str
    cause: str  # the causes of which rank 0's log must give one, with a comma between; empty: an aggregator must be named
    daily: bool = False
    needs_root: bool = False
    work: tuple[str, str] | None = None  # work and rest in ms, in place of the shape's
    sleep: str = ""  # in place of the shape's

    @property
    def name(self) -> str:
        return f"{self.shape}-{self.plant}"

    def is_right(self, cause: str) -> bool:
        return not self.cause or cause in [CAUSES[name] for name in self.cause.split(",")]


LONG = ("16", "250")  # a rank without its processor then needs more than a second for a round
NAP = "700"  # shorter than a wait that is told at once
CASES = [
    Case("tree", "sleep", "late-call", daily=True),
    Case("tree", "cpu", "no-cpu", daily=True, needs_root=True),
    Case("tree", "stop", "silent", daily=True),
    Case("tree", "skip", "not-called", daily=True),
    Case("tree", "loop", "not-called"),
    Case("tree", "aggregator", "", daily=True),
    Case("links", "link", "slow-data", needs_root=True),
    Case("ranks", "sleep", "not-called"),
    Case("ranks", "nap", "late-call", daily=True, sleep=NAP),
    Case("ranks", "cpu", "no-cpu", needs_root=True, work=LONG),
    Case("ranks", "stop", "silent"),
    Case("ranks", "skip", "not-called"),
    Case("ranks", "loop", "not-called"),
    Case("hosts", "sleep", "not-called"),
    Case("hosts", "nap", "late-call", sleep=NAP),
    Case("hosts", "cpu", "no-cpu", needs_root=True, work=LONG),
    Case("hosts", "stop", "silent"),
    Case("hosts", "skip", "not-called"),
    Case("hosts", "loop", "not-called"),
    Case("memory", "sleep", "not-called"),
    Case("memory", "nap", "late-call", sleep=NAP),
    Case("memory", "cpu", "no-cpu", needs_root=True, work=LONG),
    Case("memory", "stop", "silent"),
    Case("memory", "skip", "not-called"),
]


@dataclass
class Named:
    """When each source named somebody, in seconds after the plant, and with which cause."""

    manager: tuple[float, str] | None = None
    log: tuple[float, str] | None = None
    who: list[str] = field(default_factory=list)


class Job:
    def __init__(self, build: Path, case: Case) -> None:
        shape, work = SHAPES[case.shape], case.work
        self.folder = Path(tempfile.mkdtemp(prefix="tributary-planted-"))
        self.build, self.shape = build, shape
        self.lines: list[tuple[float, str]] = []
        elements, *times, sleep = shape.work
        sleep = case.sleep or sleep
        self.undo: list = []
        host = f"export TRIBUTARY_HOST_ID=worker-$((RANK / {shape.ranks_by_host})); " if shape.ranks_by_host else ""
        script = (f"{host}echo $TRIBUTARY_MANAGER > {self.folder}/url; echo $$ > {self.folder}/pid-$RANK; "
                  f"exec {build}/tests/system/late/tributary_planted_rank {self.folder} {' '.join([elements, *(work or times), sleep])}")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        environment |= {"TRIBUTARY_LOG": "info", "TRIBUTARY_TIMEOUT": "120", "TRIBUTARY_STATUS_DIR": "off"} | shape.variables
        # A session of the job's own: where the scheduler groups tasks by session, the caller's group may have a priority of its own, and then the hog would leave the rank
        # more or less of its processor than this test means.
        self.process = subprocess.Popen([build / "client/cli/tributary", "run", *shape.options, "--", "sh", "-c", script], env=environment, text=True,
                                        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line))

    def text(self) -> str:
        return "".join(line for _, line in list(self.lines))

    def wait_until_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        while self.shape.ready not in self.text():
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"the ranks do not work:\n{self.text()[-3000:]}")
            time.sleep(0.05)
        time.sleep(SETTLE_SECONDS)
        if late := LINE.search(self.text()):
            raise AssertionError(f"a rank is late before any is made slow: {late[0]}")

    def pid(self, rank: int = VICTIM) -> int:
        return int((self.folder / f"pid-{rank}").read_text())

    def aggregators(self) -> list[int]:
        """The aggregators' processes among the descendants of the command."""
        parent, found = {}, []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                name, _, rest = entry.read_text().rpartition(")")
                parent[int(entry.parent.name)] = int(rest.split()[1])
                if "(tributary-aggre" in name:
                    found.append(int(entry.parent.name))

        def is_ours(pid: int) -> bool:
            while pid in parent and pid != self.process.pid:
                pid = parent[pid]
            return pid == self.process.pid

        return sorted(filter(is_ours, found))

    def late_at_manager(self) -> list[dict]:
        url = (self.folder / "url").read_text().strip()
        with contextlib.suppress(OSError, ValueError, KeyError, subprocess.SubprocessError):
            if self.shape.options == LINKS:  # the manager listens in the namespaces' network alone
                text = self.in_namespace(self.pid(0), f"curl --silent --max-time 2 {url}/v1/groups")
            else:
                with urllib.request.urlopen(url + "/v1/groups", timeout=2) as answer:
                    text = answer.read()
            return [late for group in json.loads(text)["groups"] for late in group["late"]]
        return []

    # ---- what is planted

    def plant(self, what: str) -> None:
        file = self.folder / f"plant-{VICTIM}"
        if what in ("sleep", "nap", "skip", "loop"):
            file.write_text("sleep" if what == "nap" else what)
            self.undo.append(lambda: file.unlink(missing_ok=True))
        elif what == "stop":
            self.stop(self.pid())
        elif what == "aggregator":
            self.stop(self.aggregators()[-1])
        elif what == "cpu":
            self.hog()
        else:
            self.in_namespace(self.pid(), "tc qdisc replace dev eth0 root tbf rate 5mbit burst 32kb latency 2000ms")

    def stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        self.undo.append(lambda: os.kill(pid, signal.SIGCONT))

    @staticmethod
    def in_namespace(pid: int, command: str) -> str:
        return subprocess.run(["nsenter", "--target", str(pid), "--net", *command.split()], check=True, capture_output=True, text=True).stdout

    def hog(self) -> None:
        """A process that computes without a pause, on the only processor on which the rank may still run, and before it."""
        core = max(os.sched_getaffinity(0))
        for task in Path(f"/proc/{self.pid()}/task").iterdir():
            os.sched_setaffinity(int(task.name), {core})
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
        os.sched_setaffinity(hog.pid, {core})
        os.setpriority(os.PRIO_PROCESS, hog.pid, self.shape.hog)
        with contextlib.suppress(OSError):  # where each session is a group of the scheduler
            Path(f"/proc/{hog.pid}/autogroup").write_text(str(self.shape.hog))

        def end() -> None:
            hog.kill()
            hog.wait()

        self.undo.append(end)

    # ---- who is named

    def watch(self, case: Case) -> Named:
        """Plants, and returns who was named when."""
        named = Named()
        begin = time.monotonic()
        self.plant(case.plant)
        while time.monotonic() - begin < NAMED_SECONDS_MAX and not self.enough(named, case, time.monotonic() - begin):
            for late in self.late_at_manager() if case.cause and case.shape in WITH_MANAGER else []:
                named.who.append(f"rank {late['rank']}")
                if named.manager is None:
                    named.manager = (time.monotonic() - begin, late["cause"])
            for at, line in [(at, line) for at, line in list(self.lines) if at >= begin]:
                found = (LINE if case.cause else LOST).search(line)
                if found and named.log is None:
                    named.log = (at - begin, found["cause"] or "" if case.cause else found[0])
                    named.who.append(f"rank {found['rank']}" if case.cause else "aggregator")
                elif found and case.cause:
                    named.who.append(f"rank {found['rank']}")
                    if not case.is_right(named.log[1]) and at - begin < named.log[0] + CAUSE_SECONDS_MAX:
                        named.log = (named.log[0], found["cause"] or "")
            time.sleep(0.02)
        return named

    @staticmethod
    def enough(named: Named, case: Case, seconds: float) -> bool:
        has_manager = case.cause and case.shape in WITH_MANAGER
        if named.log is None or (has_manager and named.manager is None):
            return False
        return case.is_right(named.log[1]) or seconds > named.log[0] + CAUSE_SECONDS_MAX

    def end(self) -> None:
        for undo in self.undo:
            with contextlib.suppress(OSError):
                undo()
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def check(named: Named, case: Case, within: float) -> str:
    """Returns what is wrong; empty if nothing is."""
    times = [at for at, _ in filter(None, (named.manager, named.log))]
    if not times:
        return "nobody is named"
    expected = {f"rank {VICTIM}"} if case.cause else {"aggregator"}
    if set(named.who) != expected:
        return f"named: {', '.join(sorted(set(named.who)))}"
    if min(times) >= within:
        return f"named after {min(times):.2f} s"
    if named.log and not case.is_right(named.log[1]):
        return f"rank 0 says '{named.log[1]}'"
    return ""


def why_not(case: Case) -> str:
    if case.needs_root and os.geteuid() != 0:
        return "needs root"
    if case.shape == "links" and not all(map(shutil.which, ("tc", "nsenter", "curl"))):
        return "needs tc, nsenter and curl"
    return ""


def run(case: Case, build: Path, within: float) -> tuple[str, str]:
    """Returns a row of the table, and what is wrong."""
    if reason := why_not(case):
        return f"| {case.shape} | {case.plant} | - | - | left out: {reason} |", ""
    job = Job(build, case)
    try:
        job.wait_until_ready()
        named = job.watch(case)
        wrong = check(named, case, within)
        if wrong:
            print(f"--- {case.name}: {wrong}\n{job.text()[-3000:]}", flush=True)
    finally:
        job.end()
    show = lambda source: "-" if source is None else f"{source[0]:.2f}"  # noqa: E731: a short name for one column
    words = named.log[1] if named.log else named.manager[1] if named.manager else ""
    return f"| {case.shape} | {case.plant} | {show(named.manager)} | {show(named.log)} | {words} |", wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--within", type=float, default=2.0, help="the longest time until somebody is named, in seconds")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    chosen = [case for case in CASES if (case.name in arguments.names if arguments.names else arguments.all or case.daily)]
    rows, failed = [], []
    for case in chosen:
        try:
            row, wrong = run(case, arguments.build.resolve(), arguments.within)
        except (AssertionError, subprocess.CalledProcessError) as error:
            row, wrong = f"| {case.shape} | {case.plant} | - | - | |", str(error)
        print(row, flush=True)
        rows.append(row)
        if wrong:
            failed.append(f"{case.name}: {wrong}")
    print("\n| path | planted | manager, s | log of rank 0, s | cause in the log |\n|---|---|---|---|---|\n" + "\n".join(rows))
    for line in failed:
        print(f"FAILED {line}")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
