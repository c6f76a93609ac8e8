"""Torchrun starts its ranks again after one of them was killed at a random time, over each path between ranks.

TRIBUTARY_TEST_RESTARTS sets the number of restarts. Arguments name the paths: memory, ranks, datagrams, trees.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ranks import finish, without_service

RANKS = 3
RESTARTS = int(os.environ.get("TRIBUTARY_TEST_RESTARTS", "2"))
PATIENCE = 120.0  # limit of one attempt on a crowded machine
LIFE_SECONDS = 1.0  # the kill comes at a random time between the last rank's init_process_group() and this many seconds
                    # later
BUILD = Path(os.environ.get("TRIBUTARY_TEST_BUILD", "build/release")).resolve()
SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"

# Each rank writes its process id to a file, and reduces for ever; on the last attempt it ends when the path is the
# expected one.
SCRIPT = """
import os, sys
from pathlib import Path
attempt, rank, size = (int(os.environ[name]) for name in ("TORCHELASTIC_RESTART_COUNT", "RANK", "WORLD_SIZE"))
folder, last, expected = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if expected == "in-network":
    os.environ["TRIBUTARY_HOST_ID"] = f"node-{rank + 1}"
import torch, torch.distributed as dist, tributary
from datetime import timedelta
torch.set_num_threads(1)
made = folder / f"making-{attempt}-{rank}"
made.write_text(str(os.getpid()))
made.rename(folder / f"pid-{attempt}-{rank}")
dist.init_process_group("tributary", timeout=timedelta(seconds=100))
there, rounds = torch.zeros(1), 0
while attempt < last or there[0] < size:
    tensor = torch.arange(3000, dtype=torch.float32) + rank
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.arange(3000, dtype=torch.float32) * size + size * (size - 1) / 2)
    there = torch.full((1,), float(tributary.info()["path"] == expected))
    dist.all_reduce(there)
sys.stdout.write(f"back over {tributary.info()['path']}\\n")  # at once: other ranks write to the same pipe
sys.stdout.flush()
dist.destroy_process_group()
"""


def report(name: str, problem: str) -> tuple[int, int]:
    print(f"FAILED  {name}: {problem}" if problem else f"ok      {name}", flush=True)
    return int(not problem), int(bool(problem))


def pids(folder: Path, attempt: int, process: subprocess.Popen[str]) -> list[int]:
    """Returns the process ids of an attempt's ranks; empty if these do not come in time."""
    files = [folder / f"pid-{attempt}-{rank}" for rank in range(RANKS)]
    deadline = time.monotonic() + PATIENCE
    while not all(file.exists() for file in files):
        if time.monotonic() > deadline or process.poll() is not None:
            return []
        time.sleep(0.01)
    return [int(file.read_text()) for file in files]


def restarts(path: str, expected: str, environment: dict[str, str]) -> tuple[int, int]:
    name = f"{RESTARTS} restarts of {RANKS} ranks, {path}"
    dice = random.Random(path)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "script.py").write_text(SCRIPT)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--monitor-interval", "0.1"]
        command += ["--nproc-per-node", str(RANKS), "--max-restarts", str(RESTARTS)]
        command += [str(folder / "script.py"), place, str(RESTARTS), expected]
        log = (folder / "log").open("w+")
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **environment, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        try:
            for attempt in range(RESTARTS):
                alive = pids(folder, attempt, process)
                if not alive:
                    return report(name, f"attempt {attempt} did not begin: {tail(folder)}")
                time.sleep(dice.uniform(0, LIFE_SECONDS))  # the random time
                os.kill(dice.choice(alive), signal.SIGKILL)
            output = process.communicate(timeout=PATIENCE)[0]
        except (subprocess.TimeoutExpired, ProcessLookupError) as error:
            return report(name, f"{error}: {tail(folder)}")
        finally:
            stop(process)
        back = output.count(f"back over {expected}")
        problem = "" if back == RANKS and process.returncode == 0 else f"{back} ranks came back: {output} {tail(folder)}"
    return report(f"{name} ({time.monotonic() - began:.0f} s)", problem)


def tail(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-3000:]


def stop(process: subprocess.Popen[str]) -> None:
    """Ends torchrun, which then ends its ranks: they have sessions of their own."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        process.kill()


@contextmanager
def service() -> Iterator[dict[str, str]]:
    """Runs a manager and three aggregators; gives the variables by which ranks find them."""
    sys.path.insert(0, str(SCRIPTS))
    from demo_cluster import Cluster

    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(BUILD, Path(folder))
        try:
            cluster.start()
            yield {**cluster.environment(0), "TRIBUTARY_JOB": "restarts"}
        finally:
            cluster.stop()


def over(path: str) -> tuple[int, int]:
    if path == "memory":
        return restarts("in shared memory", "local", {})
    if path == "ranks":
        return restarts("between ranks over TCP", "fallback", {"TRIBUTARY_LOCAL": "off"})
    if path == "datagrams":
        return restarts("between ranks over UDP", "fallback", {"TRIBUTARY_LOCAL": "off", "TRIBUTARY_TRANSPORT": "udp"})
    with service() as environment:
        return restarts("over trees", "in-network", {**environment, "TRIBUTARY_LOCAL": "off"})


if __name__ == "__main__":
    without_service()
    finish([over(path) for path in sys.argv[1:] or ("memory", "ranks", "datagrams", "trees")])
