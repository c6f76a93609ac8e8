"""Runs PyTorch's own DistributedTest, which is in its wheel, over this backend.

    suite.py name      runs under the name "tributary"; tests that are made only for gloo or NCCL skip themselves
    suite.py gloo      runs in gloo's place, under its name
    suite.py genuine   runs with gloo itself
    ... TEST_NAME...   runs only these tests

A test that fails here is run once more with gloo itself: no test may fail that passes with gloo, except those in
suite_exceptions.txt, which gives the reasons.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import types
import unittest
from collections.abc import Callable
from pathlib import Path

from ranks import without_service

HERE = Path(__file__).resolve().parent
RANKS = "3"
TEST_SECONDS = 300


def stand_in_for_expecttest() -> None:
    """A module that PyTorch's test code imports and DistributedTest does not use."""
    module = types.ModuleType("expecttest")
    module.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    module.ACCEPT = False  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", module)


def exceptions(mode: str) -> dict[str, str]:
    lines = (HERE / "suite_exceptions.txt").read_text().splitlines()
    rows = [line.split(None, 2) for line in lines if line.strip() and not line.startswith("#")]
    return {name: reason for where, name, reason in rows if where in (mode, "both")}


def put_in_gloos_place() -> None:
    """The tests ask for gloo, and get this backend under the name gloo.

    PyTorch itself must know the difference: under gloo's own name it would use the object as an object of gloo's class.
    """
    import torch.distributed as dist

    init, new_group, get_backend = dist.init_process_group, dist.new_group, dist.get_backend

    def ours(backend: str | None) -> str | None:
        return "tributary" if backend == "gloo" else backend

    def init_in_place(backend: str | None = None, *rest: object, **named: object) -> None:
        init(ours(backend), *rest, **named)  # type: ignore[arg-type]

    def new_group_in_place(*rest: object, backend: str | None = None, **named: object) -> object:
        return new_group(*rest, backend=ours(backend), **named)  # type: ignore[arg-type]

    def named_gloo(*rest: object) -> str:
        name = get_backend(*rest)  # type: ignore[arg-type]
        return "gloo" if name == "tributary" else name

    dist.init_process_group, dist.new_group, dist.get_backend = init_in_place, new_group_in_place, named_gloo


def under_gloos_name(find: Callable[..., list[object]]) -> Callable[..., list[object]]:
    """Finds tributary's events in the profiler's record where a test looks for gloo's events."""

    def found(name: str, *rest: object, **named: object) -> list[object]:
        events = find(name.replace("gloo:", "tributary:"), *rest, **named)
        for event in events:
            event.name = event.name.replace("tributary:", "gloo:")  # type: ignore[attr-defined]
        return events

    return found


def test_class(mode: str) -> type[unittest.TestCase]:
    os.environ["BACKEND"] = "tributary" if mode == "name" else "gloo"
    os.environ["WORLD_SIZE"] = RANKS
    stand_in_for_expecttest()
    import torch
    from torch.testing._internal import common_distributed

    for feature in ("ddp", "subgroup"):
        common_distributed.DistTestCases.backend_feature[feature].add("tributary")
    if mode == "gloo":
        put_in_gloos_place()
    from torch.testing._internal.distributed import distributed_test
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

    if mode == "gloo":
        distributed_test.get_profiling_event = under_gloos_name(distributed_test.get_profiling_event)

    class Suite(TestDistBackend, DistributedTest._DistTestBase):  # type: ignore[misc]
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return Suite


class Results(unittest.TextTestResult):
    """Prints one line for each test, with its outcome and time."""

    outcomes: dict[str, str]

    def startTest(self, test: unittest.TestCase) -> None:
        unittest.TestResult.startTest(self, test)
        self._began = time.monotonic()

    def _say(self, test: unittest.TestCase, outcome: str, text: str = "") -> None:
        name = test.id().rsplit(".", 1)[-1]
        self.outcomes[name] = outcome
        print(f"{outcome:8}{name} ({time.monotonic() - self._began:.1f} s) {text}", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._say(test, "ok")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._say(test, "left out", reason)

    def addFailure(self, test: unittest.TestCase, error: object) -> None:
        self._say(test, "FAILED", self._exc_info_to_string(error, test))  # type: ignore[attr-defined]

    addError = addFailure


def passes_with_gloo(name: str) -> bool:
    """Runs gloo in another process, because the modules of this process have already read the name of their backend."""
    command = [sys.executable, __file__, "genuine", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * TEST_SECONDS, check=False)
    return done.returncode == 0 and f"ok      {name} " in done.stdout


def main() -> int:
    mode, *only = sys.argv[1:]
    without_service()
    suite = test_class(mode)
    known = exceptions(mode)
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(suite) if not only or name in only]
    results = Results(unittest.runner._WritelnDecorator(open(os.devnull, "w")), False, 0)  # type: ignore[attr-defined]
    results.outcomes = {}
    for name in names:
        if name in known and not only:
            print(f"excepted {name}: {known[name]}")
        else:
            suite(name).run(results)
    failed = [name for name, outcome in results.outcomes.items() if outcome == "FAILED"]
    worse = failed if mode == "genuine" else [name for name in failed if passes_with_gloo(name)]
    counts = {outcome: list(results.outcomes.values()).count(outcome) for outcome in ("ok", "left out")}
    print(f"{counts['ok']} passed, {counts['left out']} left out by the tests themselves, {len(known)} excepted,")
    print(f"{len(failed) - len(worse)} fail with gloo, too, {len(worse)} fail only here: {' '.join(worse)}")
    return 1 if worse or not counts["ok"] else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="tributary-torch-suite-") as scratch:
        os.environ["TEMP_DIR"] = scratch
        status = main()
    sys.exit(status)
