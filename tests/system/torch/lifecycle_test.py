"""Ranks find each other again, learn that a rank has ended, and get errors when a time-out is over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path

import torch
import torch.distributed as dist
import tributary.torch  # noqa: F401
from ranks import expect_equal, finish, meet_by_files, run, values, without_service

PATIENCE = 60.0  # a crowded machine
HERE = str(Path(__file__).resolve().parent)
LONG = timedelta(seconds=300)  # no test may wait for this long
RESTARTS = int(os.environ.get("TRIBUTARY_TEST_RESTARTS", "2"))
BETWEEN_RANKS = {"TRIBUTARY_LOCAL": "off"}


def report(name: str, problem: str) -> tuple[int, int]:
    print(f"FAILED  {name}: {problem}" if problem else f"ok      {name}")
    sys.stdout.flush()
    return int(not problem), int(bool(problem))


def interrupted(call: Callable[[], object], seconds: float) -> None:
    """A signal that comes while `call` waits ends the call."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    start = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
    except KeyboardInterrupt:
        assert time.monotonic() - start < PATIENCE
        return
    raise AssertionError("the signal had no effect")


def a_rank_that_waits_for_rank_0_hears_signals(rank: int, size: int) -> None:
    def join() -> None:
        dist.init_process_group("tributary", store=dist.HashStore(), rank=1, world_size=2, timeout=LONG)

    interrupted(join, 0.5)


def rank_0_that_waits_for_others_hears_signals(rank: int, size: int) -> None:
    def join() -> None:
        dist.init_process_group("tributary", store=dist.HashStore(), rank=0, world_size=2, timeout=LONG)

    interrupted(join, 1.0)


def a_wait_for_rank_0_is_logged_and_says_how_long_it_was(rank: int, size: int) -> None:
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            dist.init_process_group(
                "tributary", store=dist.HashStore(), rank=1, world_size=2, timeout=timedelta(seconds=6)
            )
        except dist.DistBackendError as error:
            assert "timed out after 6" in str(error) and "waits for rank 0" in str(error), error
        else:
            raise AssertionError("no error")
        log.seek(0)
        lines = log.read().decode()
    assert "rank 1 of 2 waits for rank 0" in lines, lines


def a_child_of_fork_ends_though_an_operation_is_under_way(rank: int, size: int) -> None:
    dist.init_process_group(
        "tributary", init_method=f"file://{os.environ['RENDEZVOUS']}", rank=rank, world_size=size, timeout=LONG
    )
    tensor = values(rank, 1000)
    work = dist.all_reduce(tensor, async_op=True) if rank == 0 else None
    if rank == 0:
        child = os.fork()
        if child == 0:
            try:
                work.wait()
                os._exit(9)
            except dist.DistBackendError:
                pass
            import atexit

            atexit._run_exitfuncs()  # texts that the interpreter may print when it ends
            dist.destroy_process_group()
            os._exit(5)
        deadline = time.monotonic() + PATIENCE
        ended = (0, 0)
        while ended[0] == 0 and time.monotonic() < deadline:
            ended = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
        assert ended[0] == child and os.waitstatus_to_exitcode(ended[1]) == 5, ended
        dist.send(torch.zeros(1), 1)
        work.wait()
    else:
        dist.recv(torch.zeros(1), 0)
        dist.all_reduce(tensor)
    expect_equal(tensor, values(0, 1000) + values(1, 1000))
    dist.destroy_process_group()


def time_outs_are_over_when_they_say(rank: int, size: int) -> None:
    timeout = 5.0
    dist.init_process_group(
        "tributary",
        init_method=f"file://{os.environ['RENDEZVOUS']}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=timeout),
    )
    dist.barrier()
    start = time.monotonic()
    if rank == size - 1:
        meet_by_files(rank, size)  # the missing rank waits until the other ranks have noticed
        os._exit(0)
    try:
        dist.all_reduce(torch.zeros(1000))
    except dist.DistBackendError as error:
        text = str(error)
    else:
        raise AssertionError("no error")
    waited = time.monotonic() - start
    meet_by_files(rank, size)
    for words in ("timed out after 5 s", "all_reduce", f"rank {size - 1}"):
        assert words in text, f"{words!r} is not in {text!r}"
    assert waited >= 0.98 * timeout, f"{waited} s: {text}"
    assert waited <= 4 * timeout, f"{waited} s: {text}"


def _second_life(store_port: int, rank: int, generation: int, outcome: object) -> None:
    store = dist.TCPStore("127.0.0.1", store_port, is_master=False, timeout=LONG)
    if generation > 0 and rank == 0:
        while store.add("others wait", 0) < 2:  # with the keys that the first group left in the store
            time.sleep(0.01)
    if generation > 0 and rank != 0:
        store.add("others wait", 1)
    dist.init_process_group(
        "tributary", store=dist.PrefixStore("one job", store), rank=rank, world_size=3, timeout=timedelta(seconds=60)
    )
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor[0] == 3
    dist.barrier()
    if generation == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()
    outcome.put(rank)  # type: ignore[attr-defined]


def a_store_that_outlives_the_ranks_serves_those_that_come_after() -> tuple[int, int]:
    name = "a store that outlives the ranks serves those that come after"
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    context = get_context("fork")
    outcome = context.Queue()
    for generation in range(2):
        processes = [
            context.Process(target=_second_life, args=(store.port, rank, generation, outcome)) for rank in range(3)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(PATIENCE)
            if process.is_alive():
                process.kill()
                return report(name, f"generation {generation} hangs")
    good = sum(1 for process in processes if process.exitcode == 0)
    return report(name, "" if good == 3 else f"{good} of 3 ranks came back")


SCRIPT = """
import os, sys, time, torch, torch.distributed as dist, tributary.torch
from datetime import timedelta
rank, how = int(sys.argv[1]), sys.argv[3]
sys.path.insert(0, sys.argv[4])
from ranks import meet_by_files
os.environ["RENDEZVOUS"] = sys.argv[2]
dist.init_process_group("tributary", init_method="file://" + sys.argv[2], rank=rank, world_size=3,
                        timeout=timedelta(seconds=300))
if how == "falls off the end":
    dist.all_reduce(torch.zeros(100_000))
    meet_by_files(rank, 3)  # a rank that is later than the grace could not tell this end from a failure
    sys.exit(0)
if rank == 1:
    dist.barrier()
    if how == "exits with work under way":
        work = dist.all_reduce(torch.zeros(10), async_op=True)
    if how == "raises":
        raise SystemError("a bug in the training script")
    if how == "is gone":
        os._exit(3)
    sys.exit(2)
start = time.monotonic()
try:
    dist.barrier()  # rank 1's barrier may end first
    dist.all_reduce(torch.zeros(10))
    dist.all_reduce(torch.zeros(10))
except dist.DistBackendError as error:
    print("heard after", time.monotonic() - start, "s:", error, flush=True)
    os._exit(0)
"""


def ends(how: str, environment: dict[str, str]) -> tuple[int, int]:
    """Uses real processes, because this is about the end of the interpreter."""
    name = f"the other ranks learn at once of a rank that {how} {environment or ''}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(SCRIPT)
        ranks = [
            subprocess.Popen(
                [sys.executable, str(path), str(rank), f"{folder}/rendezvous", how, HERE],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, **environment},
            )
            for rank in range(3)
        ]
        try:
            heard = [process.communicate(timeout=PATIENCE)[0] for process in ranks]
        except subprocess.TimeoutExpired:
            return report(name, "they do not")
        finally:
            for process in ranks:
                process.kill()
    if how == "falls off the end":
        codes = [process.returncode for process in ranks]
        return report(f"ranks that fall off the end do not disturb each other {environment or ''}", str(codes) if any(codes) else "")
    wrong = [text for rank, text in enumerate(heard) if rank != 1 and ("heard" not in text or "rank 1" not in text)]
    return report(name, str(wrong) if wrong else "")


ELASTIC = """
import os, signal, sys, time, torch, torch.distributed as dist
from datetime import timedelta
attempt, last = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(sys.argv[1])
dist.init_process_group("tributary", timeout=timedelta(seconds=120))
rank, size = dist.get_rank(), dist.get_world_size()
tensor = torch.full((1000,), float(rank + 1))
dist.all_reduce(tensor)
assert tensor[0] == size * (size + 1) / 2
subgroup = dist.new_group(list(range(size)))
dist.all_reduce(tensor, group=subgroup)
import tributary
if rank == 0:
    print("attempt", attempt, tributary.info()["path"], flush=True)
if attempt < last:
    if rank == attempt % size:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(tensor)
    time.sleep(300)
dist.destroy_process_group()
"""


def torchrun_restarts_come_back(environment: dict[str, str]) -> tuple[int, int]:
    name = f"{RESTARTS} restarts of 3 ranks by torchrun come back {environment or ''}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(ELASTIC)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
        command += ["--max-restarts", str(RESTARTS), str(path), str(RESTARTS)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=PATIENCE * (RESTARTS + 1))[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            return report(name, f"they hang: {process.communicate()[0]}")
    attempts = [line for line in output.splitlines() if line.startswith("attempt")]
    paths = sorted({line.split()[2] for line in attempts})
    print(f"        {len(attempts)} attempts over {paths}")
    good = process.returncode == 0 and len(attempts) == RESTARTS + 1
    return report(name, "" if good else f"exit {process.returncode}: {output}")


if __name__ == "__main__":
    if "TRIBUTARY_TEST_WITH_SERVICE" not in os.environ:
        without_service()
    only = sys.argv[1:]
    stages: dict[str, Callable[[], list[tuple[int, int]]]] = {
        "meeting": lambda: [
            run([a_rank_that_waits_for_rank_0_hears_signals], 1, bare=True),
            run([rank_0_that_waits_for_others_hears_signals], 1, bare=True),
            run([a_wait_for_rank_0_is_logged_and_says_how_long_it_was], 1, bare=True),
            a_store_that_outlives_the_ranks_serves_those_that_come_after(),
        ],
        "fork": lambda: [run([a_child_of_fork_ends_though_an_operation_is_under_way], 2, bare=True)],
        "timeout": lambda: [run([time_outs_are_over_when_they_say], 3, bare=True, killed_rank=2)],
        "ends": lambda: [
            *(ends(how, {}) for how in ("exits", "exits with work under way", "is gone", "falls off the end")),
            *(ends(how, BETWEEN_RANKS) for how in ("exits", "raises", "is gone", "falls off the end")),
        ],
        "restarts": lambda: [torchrun_restarts_come_back(environment) for environment in ({}, BETWEEN_RANKS)],
    }
    finish(result for stage, body in stages.items() if not only or stage in only for result in body())
