"""One rank of the demo: trains a small convolutional net on the UCI handwritten digits with DistributedDataParallel.

demo_run.py starts it once for each rank, with RANK, WORLD_SIZE and the TRIBUTARY_ variables set. It does the same
training three times:

  interrupted   over Tributary, while demo_run.py kills an aggregator and starts it again; goes on until the ranks are
                back on the tree
  undisturbed   over Tributary
  gloo          over PyTorch's own gloo backend

It reports each event on standard output, as one JSON object on a line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import tributary.torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 12
EPOCHS_AFTER_RETURN = 2
EPOCHS_MAX = 40  # the interrupted training ends earlier, after its return to the tree
BATCH_PER_RANK = 8
TEST_IMAGES = 360
TIMEOUT = timedelta(seconds=60)


@dataclass
class Digits:
    """1797 scans of 8 x 8 grey values from 0 to 16."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor

    @staticmethod
    def load() -> Digits:
        pixels, labels = load_digits(return_X_y=True)
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        images = torch.tensor(pixels, dtype=torch.float32).view(-1, 1, 8, 8)[order] / 16
        targets = torch.tensor(labels)[order]
        return Digits(images[TEST_IMAGES:], targets[TEST_IMAGES:], images[:TEST_IMAGES], targets[:TEST_IMAGES])

    def batches(self, epoch: int, rank: int, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Returns this rank's share of an epoch; every rank gets the same number of batches."""
        order = torch.randperm(len(self.train_labels), generator=torch.Generator().manual_seed(1000 + epoch))
        whole = BATCH_PER_RANK * size
        starts = range(rank * BATCH_PER_RANK, len(order) - whole + 1, whole)
        picks = [order[start : start + BATCH_PER_RANK] for start in starts]
        return [(self.train_images[pick], self.train_labels[pick]) for pick in picks]


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.GELU(),
        nn.Conv2d(32, 64, 3, padding=1, stride=2),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128),
        nn.GELU(),
        nn.Linear(128, 10),
    )


def report(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


class Watch:
    """Follows the communicator's counters: bytes by path, and the moves between the paths. Only rank 0 reports."""

    def __init__(self, run: str, rank: int) -> None:
        self.run, self.talks = run, rank == 0
        self.seen = tributary.torch.info()

    def step(self, epoch: int, step: int) -> None:
        now = tributary.torch.info()
        if self.talks and now["failovers"] > self.seen["failovers"]:
            report(
                "failover",
                run=self.run,
                epoch=epoch,
                step=step,
                pause_us=now["last_pause_us"],
                path=now["path"],
                reason=now["reason"],
            )
        if self.talks and now["returns"] > self.seen["returns"]:
            report("return", run=self.run, epoch=epoch, step=step, path=now["path"], tree_epoch=now["epoch"])
        self.seen = now


class NoWatch:
    """Takes the place of the counters for gloo, which has none."""

    seen = None

    def step(self, epoch: int, step: int) -> None:
        pass


def bytes_by_path(before: tributary.torch.Info | None, after: tributary.torch.Info | None) -> dict[str, int] | None:
    """Returns the bytes on each path between two readings of the counters; nothing for gloo."""
    if before is None or after is None:
        return None
    return {path: after[f"bytes_{path}"] - before[f"bytes_{path}"] for path in ("in_network", "fallback")}


class Training:
    """One of the three trainings, from its process group to its report."""

    def __init__(self, run: str, data: Digits, folder: Path) -> None:
        self.run, self.data = run, data
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        backend = "gloo" if run == "gloo" else "tributary"
        dist.init_process_group(
            backend, init_method=f"file://{folder}/{run}", rank=self.rank, world_size=self.size, timeout=TIMEOUT
        )
        self.model = DistributedDataParallel(make_model())
        self.watch = NoWatch() if run == "gloo" else Watch(run, self.rank)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.epochs_on_tree_again = 0
        if self.rank == 0:
            report("begin", run=run, counters=self.watch.seen)

    def epoch(self, epoch: int) -> None:
        start, before, losses = time.monotonic(), self.watch.seen, 0.0
        batches = self.data.batches(epoch, self.rank, self.size)
        self.model.train()
        for step, (images, labels) in enumerate(batches):
            if self.rank == 0 and step == len(batches) // 3:
                report("mid-epoch", run=self.run, epoch=epoch)
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(images), labels)
            loss.backward()
            self.optimizer.step()
            losses += loss.item()
            self.watch.step(epoch, step)
        after = self.watch.seen
        mean = torch.tensor(losses / len(batches))
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if self.rank == 0:
            report(
                "epoch",
                run=self.run,
                epoch=epoch,
                loss=mean.item(),
                accuracy=self.accuracy(),
                gradient_bytes=bytes_by_path(before, after),
                seconds=time.monotonic() - start,
            )

    def accuracy(self) -> float:
        """Returns the accuracy in percent, on images that no rank has trained on."""
        net = self.model.module.eval()
        with torch.no_grad():
            right = net(self.data.test_images).argmax(1).eq(self.data.test_labels).float().mean().item()
        return 100 * right

    def goes_on(self, epochs_done: int) -> bool:
        """Returns whether the training goes on: rank 0 decides for all."""
        more = epochs_done < EPOCHS
        if self.run == "interrupted" and self.watch.seen:
            self.epochs_on_tree_again += self.watch.seen["returns"] > 0
            more = epochs_done < EPOCHS_MAX and (more or self.epochs_on_tree_again <= EPOCHS_AFTER_RETURN)
        decision = torch.tensor([more], dtype=torch.uint8)
        dist.broadcast(decision, 0)
        return bool(decision.item())

    def finish(self, folder: Path) -> None:
        tensors = {name: tensor.detach().clone() for name, tensor in self.model.module.named_parameters()}
        digest = hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in tensors.values())).hexdigest()
        accuracy = self.accuracy()
        if self.rank == 0:
            torch.save(tensors, folder / f"{self.run}.pt")
        counters = tributary.torch.info() if self.watch.seen else None
        report("finished", run=self.run, rank=self.rank, digest=digest, accuracy=accuracy, counters=counters)
        dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description="One rank of the demo; started by demo_run.py")
    parser.add_argument("--folder", type=Path, required=True, help="where the ranks meet and leave their parameters")
    parser.add_argument("--runs", default="interrupted,undisturbed,gloo", help="which trainings, in this order")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    data = Digits.load()
    for run in arguments.runs.split(","):
        training = Training(run, data, arguments.folder)
        epoch = 0
        while True:
            epoch += 1
            training.epoch(epoch)
            if not training.goes_on(epoch):
                break
        training.finish(arguments.folder)


if __name__ == "__main__":
    main()
