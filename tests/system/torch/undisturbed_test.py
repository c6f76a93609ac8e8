"""Nobody is named as late in an undisturbed training, beside a process that keeps a processor busy.

Four ranks train the digits of the demo over its trees of three aggregators, for TRIBUTARY_UNDISTURBED_SECONDS (600 without
it). The test fails if an aggregator, the manager or rank 0 names any rank.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from demo_cluster import RANKS, Cluster, die_with_parent  # noqa: E402: the line above finds it

SECONDS = float(os.environ.get("TRIBUTARY_UNDISTURBED_SECONDS", "600"))
LATE = re.compile(r"is late( by|:)")
START_SECONDS = 120.0
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


def watch(cluster: Cluster, ranks: list[subprocess.Popen]) -> list[str]:
    """Returns whoever is named as late."""
    named, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        for rank, process in enumerate(ranks):
            assert process.poll() is None, f"rank {rank} has ended:\n{(cluster.folder / f'rank-{rank}.log').read_text()[-3000:]}"
        named += late_at_manager(cluster)
        time.sleep(1)  # how often to look
    return named + late_in_logs(cluster.folder)


def wait_for_the_trees(cluster: Cluster) -> None:
    end = time.monotonic() + START_SECONDS
    while "in-network reduction in use" not in (log := (cluster.folder / "rank-0.log").read_text()):
        assert time.monotonic() < end, f"the ranks do not use trees:\n{log[-3000:]}"
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
