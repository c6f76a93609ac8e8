"""Tests that with exact sums the number of ranks changes a training only by what the ranks' own gradients differ.

A small model trains on the demo's handwritten digits with the same global batches on 2, 4 and 8 ranks. Each rank computes the
gradient of its share in float32, so it is rounded in another way for each number of ranks. The sums add nothing to it:

- Every averaged gradient is the exact average of the ranks' gradients, rounded once.
- So at each step its distance from the gradient of the whole batch, in float64 at the same parameters, is at most the
  average of the ranks' own distances, and one rounding.
- The losses of two numbers of ranks then differ by at most the distances of all steps before, each times the learning
  rate and the length of the gradient: a step moves the parameters by so much, and the loss follows its gradient. That is
  true to first order, and has room: errors of single parameters point in all directions.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from ranks import finish, run, without_service
from torch import nn
from tributary.torch import numerics

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from demo_train import Digits  # noqa: E402: the line above finds it

SIZES = (2, 4, 8)
STEPS = 20
BATCH = 48  # of all ranks together
RATE = 0.5
FLOAT32 = 2.0**-24


def make_model() -> nn.Module:
    torch.manual_seed(7)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 10))


def flat(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def gradient(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Returns the loss and its gradient."""
    loss = nn.functional.cross_entropy(net(images), labels)
    return loss.item(), flat(list(torch.autograd.grad(loss, list(net.parameters()))))


def in_float64(net: nn.Module) -> nn.Module:
    copy = make_model().double()
    copy.load_state_dict({name: tensor.double() for name, tensor in net.state_dict().items()})
    return copy


def is_exact_average(average: torch.Tensor, own: torch.Tensor, size: int) -> bool:
    """Says whether `average` is the exact average of all ranks' gradients, rounded once."""
    all_of_them = [torch.empty_like(own) for _ in range(size)]
    dist.all_gather(all_of_them, own)
    wide = np.stack([tensor.numpy() for tensor in all_of_them]).astype(np.longdouble)
    expected = (wide.sum(0) / size).astype(np.float32)
    # A long double has the exact sum of such floats if they lie less than 38 binary places apart.
    sizes = np.abs(wide)
    sure = sizes.max(0) * size < 2.0**38 * np.where(sizes == 0, np.inf, sizes).min(0)
    assert sure.mean() > 0.99, f"{sure.mean()} of the averages can be checked"
    return bool((expected == average.numpy())[sure].all())


def average_of(values: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(values, dist.ReduceOp.AVG)
    return values


def training(folder: Path) -> Callable[[int, int], None]:
    def losses_on_this_number_of_ranks(rank: int, size: int) -> None:
        data, net, share = Digits.load(), make_model(), BATCH // size
        steps = []
        for step in range(STEPS):
            begin = step * BATCH + rank * share
            images, labels = data.train_images[begin : begin + share], data.train_labels[begin : begin + share]
            _, own = gradient(net, images, labels)
            loss, true = gradient(in_float64(net), images.double(), labels)
            with numerics("exact"):
                average = average_of(own.clone())
                true_average = average_of(true.clone())
                own_error = average_of((own - true).norm().reshape(1)).item()
                loss = average_of(torch.tensor([loss], dtype=torch.float64)).item()
            assert is_exact_average(average, own, size), f"step {step}: the average is not exact"
            error, length = (average - true_average).norm().item(), true_average.norm().item()
            assert error <= own_error + FLOAT32 * length, f"step {step}: {error}, the ranks' own: {own_error}"
            with torch.no_grad():
                parameters = flat(list(net.parameters()))
                torch.nn.utils.vector_to_parameters(parameters - RATE * average, net.parameters())
            steps.append({"loss": loss, "error": error, "length": length, "parameters": parameters.norm().item()})
        if rank == 0:
            (folder / str(size)).write_text(json.dumps(steps))

    return losses_on_this_number_of_ranks


def rounded_averages_are_not_exact(rank: int, size: int) -> None:
    """The control: the check above sees the roundings of a fast sum."""
    data = Digits.load()
    begin = rank * BATCH
    _, own = gradient(make_model(), data.train_images[begin : begin + BATCH], data.train_labels[begin : begin + BATCH])
    assert not is_exact_average(average_of(own.clone()), own, size)


def compare(folder: Path) -> tuple[int, int]:
    """Compares the losses of two numbers of ranks, step by step."""
    runs = {size: json.loads((folder / str(size)).read_text()) for size in SIZES}
    failed = 0
    for a, b in combinations(SIZES, 2):
        bound, most, least_room = 0.0, 0.0, float("inf")
        for one, other in zip(runs[a], runs[b], strict=True):
            difference = abs(one["loss"] - other["loss"])
            room = bound * max(one["length"], other["length"])
            failed += difference > room + 1e-15 * one["loss"]
            most = max(most, difference)
            least_room = min(least_room, room / difference if min(room, difference) > 0 else float("inf"))
            # The update of the parameters is rounded, too.
            bound += sum(RATE * step["error"] + 2 * FLOAT32 * step["parameters"] for step in (one, other))
        learned = runs[a][0]["loss"] - runs[a][-1]["loss"]
        print(f"{a} and {b} ranks: losses differ by up to {most:.2g}, {least_room:.2g} times below the bound")
        failed += bound > 0.01 * learned  # else the bound would say nothing
    return len(SIZES), failed


if __name__ == "__main__":
    without_service()
    with tempfile.TemporaryDirectory() as name:
        results = [run([training(Path(name))], size) for size in SIZES]
        results.append(run([rounded_averages_are_not_exact], 4))
        if not any(failed for _, failed in results):
            results.append(compare(Path(name)))
    finish(results)
