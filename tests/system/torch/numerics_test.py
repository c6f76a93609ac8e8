"""Tests that a training with exact sums ends with the same bits on every path, also if aggregators are killed.

Three ranks train the demo's model on scikit-learn's handwritten digits with DistributedDataParallel: with one
aggregator, with three in two levels, with two and four lanes, between the ranks, in the shared memory of one host, and while rank 0
kills aggregators at random in the middle of sums. All parameters must have the same bits, and sums of float64 those of
Python's math.fsum.

    numerics_test.py                   runs `tributary run` once for each shape of the trees
    numerics_test.py --rank LAYOUT...  one rank of such a run: trains once in each layout

TRIBUTARY_TEST_BUILD is the build; TRIBUTARY_TEST_KILL_RUNS says how many runs have kills, each at times of its own.
"""

import hashlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from ranks import finish

import torch
import torch.distributed as dist
import tributary.torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from demo_train import Digits, make_model  # noqa: E402: the line above finds it

RANKS = 3  # an average by three is rounded
STEPS = 24
KILLS = 2  # of three aggregators in each run, so that trees can come back after the first
KILL_RUNS = int(os.environ.get("TRIBUTARY_TEST_KILL_RUNS", "1"))
KILL_DELAY_SECONDS = 0.004  # the most time between the start of a sum and a kill
LIMIT_SECONDS = 240
RETURN_SECONDS = 60.0
WITHOUT_SERVICE = {"TRIBUTARY_MANAGER": None}


@dataclass
class Layout:
    """A way for sums to go. Variables without a value are removed."""

    path: str  # the counter of the bytes that must go this way
    variables: dict[str, str | None] = field(default_factory=dict)
    kills: bool = False
    of_calls: bool = False  # numerics of the calls, in a group with fast numerics


IN_ONE_TREE = {
    "one aggregator": Layout("bytes_in_network"),
    "two lanes": Layout("bytes_in_network", {"TRIBUTARY_LANES": "2"}),
    "four lanes": Layout("bytes_in_network", {"TRIBUTARY_LANES": "4"}),
    "between the ranks": Layout("bytes_fallback", WITHOUT_SERVICE | {"TRIBUTARY_LOCAL": "off"}),
    "one host": Layout("bytes_local", WITHOUT_SERVICE | {"TRIBUTARY_LOCAL": "auto", "TRIBUTARY_HOST_ID": "one"}),
    # The controls: rounded sums differ between the paths, so equal digests prove something.
    "rounded, one aggregator": Layout("bytes_in_network", {"TRIBUTARY_NUMERICS": "fast"}),
    "rounded, between the ranks": Layout(
        "bytes_fallback", WITHOUT_SERVICE | {"TRIBUTARY_LOCAL": "off", "TRIBUTARY_NUMERICS": "fast"}
    ),
}
IN_TWO_LEVELS = {
    "three aggregators, two levels": Layout("bytes_in_network"),
    "two levels, exact calls": Layout("bytes_in_network", {"TRIBUTARY_NUMERICS": "fast"}, of_calls=True),
    "aggregators are killed": Layout("bytes_fallback", kills=True),
}
LAYOUTS = IN_ONE_TREE | IN_TWO_LEVELS
FIRST = "one aggregator"


# ---- One rank.


class Kills:
    """Rank 0 kills aggregators in the middle of sums: all ranks know at which steps."""

    def __init__(self, count: int, seed: str) -> None:
        self._dice = random.Random(seed)
        self._steps = sorted(self._dice.sample(range(2, STEPS - 2), count))
        self._buckets = [self._dice.randrange(3) for _ in range(count)]

    def begin_step(self, step: int) -> None:
        """Waits until the ranks are on trees again if this step has a kill, so that it hits a tree."""
        if not self._steps or step < self._steps[0]:
            return
        end = time.monotonic() + RETURN_SECONDS
        there = torch.zeros(1)
        while there.item() == 0:
            assert time.monotonic() < end, f"the ranks are not back on trees: {tributary.torch.info()}"
            there = torch.tensor([float(tributary.torch.info()["path"] == "in-network")])
            dist.all_reduce(there, dist.ReduceOp.MIN)

    def sum_has_begun(self, step: int, bucket: dist.GradBucket) -> None:
        if not self._steps or step < self._steps[0]:
            return
        if bucket.index() != self._buckets[0] and not bucket.is_last():
            return
        del self._steps[0], self._buckets[0]
        if dist.get_rank() == 0:
            time.sleep(self._dice.uniform(0, KILL_DELAY_SECONDS))  # the random time
            self._kill_an_aggregator()

    def _kill_an_aggregator(self) -> None:
        """Kills an aggregator of the `tributary run` that has started this rank."""
        alive = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name, rest = (process / "stat").read_text().split(" (", 1)[1].rsplit(") ", 1)
            except (FileNotFoundError, ProcessLookupError):
                continue
            state, parent = rest.split()[:2]
            if name == "tributary-aggre" and int(parent) == os.getppid() and state != "Z":
                alive.append(int(process.name))
        assert alive, "there is no aggregator to kill"
        os.kill(self._dice.choice(sorted(alive)), signal.SIGKILL)


def train(kills: Kills) -> str:
    """Returns a digest of the parameters' bits."""
    data = Digits.load()
    batches = data.batches(0, dist.get_rank(), RANKS)[:STEPS]
    net = DistributedDataParallel(make_model(), bucket_cap_mb=0.1)
    step = 0

    def average(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        work = dist.all_reduce(bucket.buffer(), op=dist.ReduceOp.AVG, async_op=True)
        kills.sum_has_begun(step, bucket)
        return work.get_future().then(lambda done: done.value()[0])

    net.register_comm_hook(None, average)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step, (images, labels) in enumerate(batches):
        kills.begin_step(step)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()
    digest = hashlib.sha256(b"".join(parameter.detach().numpy().tobytes() for parameter in net.parameters())).digest()
    number = torch.tensor([int.from_bytes(digest[:7], "big")])
    least = number.clone()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    assert torch.equal(least, number), "the ranks have different parameters"
    return digest.hex()[:16]


def wrong_sums() -> int:
    """Returns the number of sums of float64 that are not Python's."""
    values = [[far_apart(random.Random(1000 * rank + i)) for i in range(500)] for rank in range(RANKS)]
    mine = torch.tensor(values[dist.get_rank()], dtype=torch.float64)
    dist.all_reduce(mine)
    expected = [math.fsum(column) for column in zip(*values, strict=True)]
    return sum(ours != python for ours, python in zip(mine.tolist(), expected, strict=True))


def far_apart(source: random.Random) -> float:
    return math.ldexp(source.uniform(-1, 1), source.choice([0, 0, 50, 100, -60, 900]))


@contextmanager
def variables(changed: dict[str, str | None]) -> Iterator[None]:
    before = dict(os.environ)
    try:
        for name, value in changed.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def train_in(layout: Layout, meeting: Path) -> dict:
    rank, seed = int(os.environ["RANK"]), os.environ["NUMERICS_SEED"]
    with variables(layout.variables):
        dist.init_process_group("tributary", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
        with tributary.torch.numerics("exact") if layout.of_calls else nullcontext():
            result = {"wrong": wrong_sums(), "digest": train(Kills(KILLS if layout.kills else 0, seed))}
        result |= tributary.torch.info()
        dist.barrier()
        dist.destroy_process_group()
    return result


def main_of_rank(names: list[str]) -> None:
    torch.set_num_threads(1)
    for i, name in enumerate(names):
        result = train_in(LAYOUTS[name], Path(os.environ["NUMERICS_FOLDER"], str(i)))
        if os.environ["RANK"] == "0":
            print(json.dumps({"layout": name} | result), flush=True)


# ---- The test.


def results_of(options: list[str], names: list[str], seed: int = 0) -> dict[str, dict]:
    """Returns the result of each layout."""
    tributary_run = Path(os.environ["TRIBUTARY_TEST_BUILD"], "client/cli/tributary")
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")},
            "TRIBUTARY_NUMERICS": "exact",
            "TRIBUTARY_TUNING": "off",
            "OMP_NUM_THREADS": "1",
            "NUMERICS_FOLDER": folder,
            "NUMERICS_SEED": str(seed),
        }
        rank = [sys.executable, __file__, "--rank", *names]
        done = subprocess.run(
            [tributary_run, "run", "--ranks", str(RANKS), *options, "--", *rank],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
            env=environment,
        )
    results = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"digest"' in line]
    assert done.returncode == 0 and len(results) == len(names), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return {result["layout"]: result for result in results}


def faults_of(name: str, result: dict, expected: str) -> list[str]:
    layout = LAYOUTS[name]
    lanes = int(layout.variables.get("TRIBUTARY_LANES") or 1)
    wrongs = {
        f"the parameters differ from those of {FIRST}": result["digest"] != expected,
        f"{result['wrong']} sums are not math.fsum's": result["wrong"] != 0,
        f"no byte went this way: {result}": result[layout.path] == 0,
        f"trees were lost {result['failovers']} times": (result["failovers"] > 0) != layout.kills,
        f"there were {result['lanes']} lanes": layout.path == "bytes_in_network" and result["lanes"] != lanes,
    }
    return [text for text, wrong in wrongs.items() if wrong]


def main() -> None:
    outcomes: list[tuple[int, int]] = []

    def report(name: str, note: str, faults: list[str]) -> None:
        print(f"{'FAILED ' if faults else 'ok     '} {name}: {note} {'; '.join(faults)}".rstrip(), flush=True)
        outcomes.append((int(not faults), int(bool(faults))))

    results = results_of(["--aggregators", "1", "--lanes", "1"], list(IN_ONE_TREE))
    expected = results[FIRST]["digest"]
    two_levels = ["--aggregators", "3", "--levels", "2", "--lanes", "1"]
    results |= results_of(two_levels, list(IN_TWO_LEVELS))
    rounded = {result["digest"] for name, result in results.items() if name.startswith("rounded")}
    for name, result in results.items():
        if not name.startswith("rounded"):
            report(name, result["digest"], faults_of(name, result, expected))
    report("rounded sums differ", " and ".join(rounded), [] if len(rounded | {expected}) == 3 else ["two are equal"])
    name = "aggregators are killed"
    for seed in range(1, KILL_RUNS):
        result = results_of(two_levels, [name], seed)[name]
        note = f"{result['digest']}, {result['failovers']} trees lost, {result['returns']} returns"
        report(f"{name}, seed {seed}", note, faults_of(name, result, expected))
    finish(outcomes)


if __name__ == "__main__":
    main_of_rank(sys.argv[2:]) if "--rank" in sys.argv else main()
