"""A job of 16 ranks hangs, because one rank skips a call: `tributary dump` names it, and PyTorch's own analyzer does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import torch
import torch.distributed as dist
from ranks import without_service

RANKS = 16
ABSENT = 5
CALLS = 3  # that all ranks make
OTHERS = [rank for rank in range(RANKS) if rank != ABSENT]
COUNT = 1000
LIMIT_SECONDS = 60.0


def rank_main(rank: int, folder: Path, hung: Barrier) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("tributary", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS, timeout=timedelta(minutes=5))
    for _ in range(CALLS):
        dist.all_reduce(torch.ones(COUNT))
    hung.wait()
    if rank == ABSENT:
        time.sleep(10 * LIMIT_SECONDS)
    dist.all_reduce(torch.ones(COUNT))


def dump(ports: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(os.environ["TRIBUTARY_TEST_BUILD"]) / "client/cli/tributary"
    return subprocess.run([program, "dump", "--dir", ports, "--job", "hung", *arguments], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)


def groups_of(ports: Path) -> list[dict]:
    dumped = dump(ports, "--form", "json")
    return json.loads(dumped.stdout)["groups"] if dumped.returncode == 0 else []


def wait_for_the_verdict(ports: Path) -> dict:
    end = time.monotonic() + LIMIT_SECONDS
    while True:
        groups = groups_of(ports)
        if groups and groups[0]["verdict"] and groups[0]["verdict"]["waiting"] == OTHERS:
            return groups[0]
        assert time.monotonic() < end, f"the dump does not name the rank: {groups and groups[0]['verdict']}"
        time.sleep(0.05)  # how often to look; no result depends on it


def check_the_dump(ports: Path, hung: Barrier) -> None:
    hung.wait()
    group = wait_for_the_verdict(ports)
    assert len(group["records"]) == RANKS, len(group["records"])
    verdict = group["verdict"]
    assert verdict["not_called"] == [ABSENT], verdict
    assert verdict["call"] == f"all_reduce of {COUNT} float32 (sum)", verdict
    print(f"ok      the dump names rank {ABSENT} of {RANKS}")


def check_the_analyzer(ports: Path, into: Path) -> None:
    dumped = dump(ports, "--form", "fr_trace", "--into", str(into))
    assert dumped.returncode == 0, dumped.stderr
    (folder,) = into.iterdir()
    read = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder)], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    said = read.stdout + read.stderr
    assert read.returncode == 0, said
    for line in ("collective: nccl:all_reduce", f"missing ranks: {{{ABSENT}}}", f"input sizes: [[{COUNT}]]", f"world size: {RANKS}"):
        assert line in said.splitlines(), f"{line!r} is not in what the analyzer says:\n{said}"
    print(f"ok      PyTorch's analyzer names rank {ABSENT}")


def main() -> None:
    build = os.environ["TRIBUTARY_TEST_BUILD"]
    without_service()
    os.environ["TRIBUTARY_TEST_BUILD"] = build
    context = get_context("fork")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ports = folder / "ports"
        os.environ |= {"TRIBUTARY_STATUS_DIR": str(ports), "TRIBUTARY_JOB": "hung", "TRIBUTARY_LOG": "off"}
        hung = context.Barrier(RANKS + 1)
        ranks = [context.Process(target=rank_main, args=(rank, folder, hung)) for rank in range(RANKS)]
        for process in ranks:
            process.start()
        try:
            check_the_dump(ports, hung)
            check_the_analyzer(ports, folder / "into")
        finally:
            for process in ranks:
                process.kill()
            for process in ranks:
                process.join()


if __name__ == "__main__":
    main()
