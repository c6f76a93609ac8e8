"""Tests that a training with exact sums ends with the same bits on every path, also if an aggregator is killed.

Three ranks train a small network on scikit-learn's handwritten digits with DistributedDataParallel: with one aggregator,
with three, with two lanes, between the ranks, in the shared memory of one host, and while rank 0 kills an aggregator in
the middle of a sum. All parameters must have the same bits, and sums of float64 those of Python's math.fsum.

    numerics_test.py            runs tributary run for each layout (TRIBUTARY_TEST_BUILD is the build)
    numerics_test.py --rank     one rank of such a run
"""

import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ranks import finish

import torch
import torch.distributed as dist
import tributary.torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 3  # an average by three is rounded
STEPS = 30
KILL_AT_STEP = 10
BATCH = 16
LIMIT_SECONDS = 240


# ---- One rank.


def kill_an_aggregator() -> None:
    """Kills an aggregator of the `tributary run` that has started this rank."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (process / "stat").read_text().split(" (", 1)[1].rsplit(") ", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name == "tributary-aggre" and int(rest.split()[1]) == os.getppid():
            os.kill(int(process.name), signal.SIGKILL)
            return
    raise AssertionError("there is no aggregator to kill")


def train(kills: bool) -> str:
    """Returns a digest of the parameters' bits."""
    torch.manual_seed(7)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 10)), bucket_cap_mb=0.01)
    step = 0
    killed = not kills or dist.get_rank() != 0

    def average(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        nonlocal killed
        work = dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, async_op=True)
        if step >= KILL_AT_STEP and not killed:
            killed = True
            kill_an_aggregator()
        return work.get_future().then(lambda done: done.value()[0])

    net.register_comm_hook(None, average)
    pixels, labels = load_digits(return_X_y=True)
    images, targets = torch.tensor(pixels, dtype=torch.float32) / 16, torch.tensor(labels)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
    for step in range(STEPS):
        first = (step * RANKS + dist.get_rank()) * BATCH
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images[first : first + BATCH]), targets[first : first + BATCH]).backward()
        optimizer.step()
    bits = b"".join(parameter.detach().numpy().tobytes() for parameter in net.parameters())
    return hashlib.sha256(bits).hexdigest()


def wrong_sums() -> int:
    """Returns the number of sums of float64 that are not Python's."""
    values = [[far_apart(random.Random(1000 * rank + i)) for i in range(500)] for rank in range(RANKS)]
    mine = torch.tensor(values[dist.get_rank()], dtype=torch.float64)
    dist.all_reduce(mine)
    expected = [math.fsum(column) for column in zip(*values, strict=True)]
    return sum(ours != python for ours, python in zip(mine.tolist(), expected, strict=True))


def far_apart(source: random.Random) -> float:
    return math.ldexp(source.uniform(-1, 1), source.choice([0, 0, 50, 100, -60, 900]))


def main_of_rank() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("tributary")
    result = {"wrong": wrong_sums(), "digest": train("KILLS" in os.environ)}
    info = tributary.torch.info()
    dist.barrier()
    dist.destroy_process_group()
    if os.environ["RANK"] == "0":
        print(json.dumps(result | info))


# ---- The test.


@dataclass
class Layout:
    name: str
    options: list[str]
    path: str
    variables: dict[str, str] = field(default_factory=dict)


LAYOUTS = [
    Layout("one aggregator", ["--aggregators", "1"], "bytes_in_network"),
    Layout("three aggregators, two levels", ["--aggregators", "3", "--levels", "2"], "bytes_in_network"),
    Layout("two lanes", ["--aggregators", "1", "--lanes", "2"], "bytes_in_network"),
    Layout("between the ranks", ["--aggregators", "0"], "bytes_fallback", {"TRIBUTARY_LOCAL": "off"}),
    Layout("one host", ["--aggregators", "0"], "bytes_local", {"TRIBUTARY_LOCAL": "auto", "TRIBUTARY_HOST_ID": "one"}),
    Layout("an aggregator is killed", ["--aggregators", "3", "--levels", "2"], "bytes_fallback", {"KILLS": "1"}),
]


def result_of(layout: Layout, numerics: str = "exact") -> dict:
    tributary_run = Path(os.environ["TRIBUTARY_TEST_BUILD"], "client/cli/tributary")
    variables = {"TRIBUTARY_NUMERICS": numerics, "TRIBUTARY_TUNING": "off", "OMP_NUM_THREADS": "1", **layout.variables}
    words = [f"{name}={value}" for name, value in variables.items()]
    rank = ["env", *words, sys.executable, __file__, "--rank"]
    done = subprocess.run(
        [tributary_run, "run", "--ranks", str(RANKS), *layout.options, "--", *rank],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if '"digest"' in line]
    assert done.returncode == 0 and lines, f"{layout.name}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(lines[0])


def main() -> None:
    passed = failed = 0
    digests: dict[str, str] = {}
    for layout in LAYOUTS:
        result = result_of(layout)
        digests[layout.name] = result["digest"]
        killed = "KILLS" in layout.variables
        faults = [
            text
            for text, wrong in {
                f"the parameters differ from those of {LAYOUTS[0].name}": result["digest"] != digests[LAYOUTS[0].name],
                f"{result['wrong']} sums are not math.fsum's": result["wrong"] != 0,
                f"no byte went this way: {result}": result[layout.path] == 0,
                f"trees were lost {result['failovers']} times": (result["failovers"] > 0) != killed,
            }.items()
            if wrong
        ]
        print(f"{'FAILED ' if faults else 'ok     '} {layout.name}: {result['digest'][:16]} {'; '.join(faults)}".rstrip())
        failed += bool(faults)
        passed += not faults
    # The control: rounded sums differ between the paths, so the digests above prove something.
    rounded = {result_of(layout, "fast")["digest"] for layout in (LAYOUTS[0], LAYOUTS[1], LAYOUTS[3])}
    print(f"{'ok     ' if len(rounded) > 1 else 'FAILED '} rounded sums give {len(rounded)} results on three paths")
    failed += len(rounded) == 1
    finish([(passed + (len(rounded) > 1), failed)])


if __name__ == "__main__":
    main_of_rank() if "--rank" in sys.argv else main()
