"""Nobody is named as late in an undisturbed training, beside a process that keeps a processor busy.

Four ranks train the digits of the demo over its trees of three aggregators, for TRIBUTARY_UNDISTURBED_SECONDS (600 without
it). The test fails if an aggregator, the manager or rank 0 names any rank after the first steps. With each name in a log
it prints for how much of the three seconds before it each process had a thread that waited for a processor: on an
overloaded machine a name may tell the truth.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from demo_cluster import AGGREGATORS, RANKS, Cluster, die_with_parent  # noqa: E402: the line above finds it

SECONDS = float(os.environ.get("TRIBUTARY_UNDISTURBED_SECONDS", "600"))
LATE = re.compile(r"is late( by|:)")
LOG_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+[+-]\d\d:\d\d")
START_SECONDS = 120.0
START_STEPS = 20  # the first one takes some seconds under load, and the others do wait for the last rank
BEFORE_SECONDS = 3.0  # before a name, for which the waits for a processor are printed
PAUSE_SECONDS = 0.05  # after each step, as for a batch that is read, so that two processors are enough for all


def train(rank: int, folder: Path) -> None:
    """One rank: trains until the file "stop" is there, which rank 0 looks for between epochs."""
    import torch
    import torch.distributed as dist
    import tributary.torch
    from demo_train import Digits, make_model
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("tributary", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS, timeout=timedelta(minutes=2))
    data, model = Digits.load(), DistributedDataParallel(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    more, epoch, steps = True, 0, 0
    while more:
        for images, labels in data.batches(epoch, rank, RANKS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            steps += 1
            if rank == 0 and steps == START_STEPS:
                (folder / "begun").touch()
            time.sleep(PAUSE_SECONDS)
        epoch += 1
        decision = torch.tensor([not (folder / "stop").exists()], dtype=torch.uint8)
        dist.broadcast(decision, 0)
        more = bool(decision.item())
    if rank == 0:
        (folder / "steps").write_text(json.dumps({"steps": steps, "path": tributary.torch.info()["path"]}))
    dist.destroy_process_group()


def start_ranks(cluster: Cluster) -> list[subprocess.Popen]:
    ranks = []
    for rank in range(RANKS):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        environment |= cluster.environment(rank) | {"OMP_NUM_THREADS": "1", "TRIBUTARY_LOG": "info"}
        with (cluster.folder / f"rank-{rank}.log").open("wb") as log:
            ranks.append(subprocess.Popen([sys.executable, __file__, str(rank), str(cluster.folder)], stdout=log, stderr=log, env=environment, preexec_fn=die_with_parent))
    return ranks


def late_at_manager(cluster: Cluster) -> list[str]:
    request = urllib.request.Request(f"{cluster.url}/v1/groups")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return [f"manager: {late}" for group in json.load(answer)["groups"] for late in group["late"]]


def late_in_logs(folder: Path) -> list[str]:
    return [f"{log.name}: {line}" for log in folder.glob("*.log") for line in log.read_text(errors="replace").splitlines() if LATE.search(line)]


class ProcessorWaits:
    """For how long each thread of some processes was ready to run, and did not run."""

    def __init__(self, processes: dict[str, int]) -> None:
        self.processes = processes  # process ids by name
        self.looks: list[tuple[float, dict[str, dict[str, int]]]] = []  # time, and nanoseconds by process and thread

    def look(self) -> None:
        waited: dict[str, dict[str, int]] = {}
        for name, pid in self.processes.items():
            waited[name] = {}
            for thread in Path(f"/proc/{pid}/task").glob("*"):
                with contextlib.suppress(OSError):  # the thread has ended
                    waited[name][thread.name] = int((thread / "schedstat").read_text().split()[1])
        self.looks.append((time.time(), waited))

    def before(self, named_at: float) -> str:
        looks = [look for look in self.looks if named_at - BEFORE_SECONDS - 1 <= look[0] <= named_at + 1]
        if len(looks) < 2:
            return "not known"
        (first, then), (last, now) = looks[0], looks[-1]
        parts = {name: max((now[name][one] - then[name][one] for one in now[name].keys() & then[name].keys()), default=0) for name in now}
        return ", ".join(f"{name} {part / (last - first) / 1e7:.0f} %" for name, part in parts.items())


def with_waits(line: str, waits: ProcessorWaits) -> str:
    found = LOG_TIME.search(line)
    return f"{line}\n    waited for a processor: {waits.before(datetime.fromisoformat(found[0]).timestamp())}" if found else line


def watch(cluster: Cluster, ranks: list[subprocess.Popen]) -> list[str]:
    """Returns whoever is named as late."""
    named, end, at_start = [], time.monotonic() + SECONDS, set(late_in_logs(cluster.folder))
    waits = ProcessorWaits({f"rank {rank}": process.pid for rank, process in enumerate(ranks)} | {name: cluster.services[name].process.pid for name in AGGREGATORS})
    while time.monotonic() < end:
        for rank, process in enumerate(ranks):
            assert process.poll() is None, f"rank {rank} has ended:\n{(cluster.folder / f'rank-{rank}.log').read_text()[-3000:]}"
        named += late_at_manager(cluster)
        waits.look()
        time.sleep(1)  # how often to look
    return named + [with_waits(line, waits) for line in late_in_logs(cluster.folder) if line not in at_start]


def wait_for_the_trees(cluster: Cluster) -> None:
    """Returns when the ranks train over trees."""
    end = time.monotonic() + START_SECONDS
    while "in-network reduction in use" not in (log := (cluster.folder / "rank-0.log").read_text()) or not (cluster.folder / "begun").exists() or late_at_manager(cluster):
        assert time.monotonic() < end, f"the ranks do not train over trees:\n{log[-3000:]}"
        time.sleep(0.2)


def main() -> int:
    build = Path(os.environ["TRIBUTARY_TEST_BUILD"])
    with tempfile.TemporaryDirectory() as name:
        cluster = Cluster(build, Path(name))
        ranks: list[subprocess.Popen] = []
        busy = None
        try:
            cluster.start()
            ranks = start_ranks(cluster)
            wait_for_the_trees(cluster)
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=die_with_parent)
            named = watch(cluster, ranks)
            (cluster.folder / "stop").touch()
            for process in ranks:
                assert process.wait(timeout=120) == 0
            done = json.loads((cluster.folder / "steps").read_text())
        finally:
            for process in [*ranks, *filter(None, [busy])]:
                process.kill()
                process.wait()
            cluster.stop()
    print(f"{done['steps']} steps in {SECONDS:.0f} s, path {done['path']}, load {os.getloadavg()[1]:.1f}; named as late: {len(named)}")
    print("\n".join(named[:50]))
    assert done["path"] == "in-network", done
    return 1 if named else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        train(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        sys.exit(main())
