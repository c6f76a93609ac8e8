"""Tests of training over the backend without a service, with DistributedDataParallel, FSDP2 and torchrun.

They prove that every gradient byte goes through the backend.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import tributary.torch
from ranks import DEVICE, Check, finish, run, without_service
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

ROWS, FEATURES, CLASSES = 48, 64, 10  # 2, 3 and 4 ranks can share ROWS evenly
STEPS = 5
DDP_EXTRA_BYTES = 200  # one call for the indices of rebuilt buckets

checks: list[Check] = []


def check(function: Check) -> Check:
    checks.append(function)
    return function


def model(width: int = 128) -> nn.Sequential:
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    )


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(ROWS, FEATURES, generator=generator, device="cpu")
    labels = torch.randint(CLASSES, (ROWS,), generator=generator, device="cpu")
    return inputs.to(DEVICE), labels.to(DEVICE)


def shard(rank: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, labels = data()
    rows = ROWS // size
    return inputs[rank * rows : (rank + 1) * rows], labels[rank * rows : (rank + 1) * rows]


def train(net: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, steps: int = STEPS) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()


def parameters_of_one_process(width: int = 128) -> list[torch.Tensor]:
    net = model(width)
    train(net, *data())
    return [parameter.detach() for parameter in net.parameters()]


def bytes_moved() -> int:
    info = tributary.torch.info()
    return info["bytes_in_network"] + info["bytes_fallback"] + info["bytes_local"]


def expect_same_on_all_ranks(tensor: torch.Tensor, size: int) -> None:
    copies = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(copies, tensor)
    assert all(torch.equal(copy, tensor) for copy in copies), "parameters differ between ranks"


@check
def ddp_equals_one_process_on_the_whole_batch(rank: int, size: int) -> None:
    net = DistributedDataParallel(model(), bucket_cap_mb=0.02)
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.detach(), expected, rtol=1e-5, atol=1e-6)
        expect_same_on_all_ranks(ours.detach(), size)


@check
def ddp_starts_from_the_parameters_of_rank_0(rank: int, size: int) -> None:
    torch.manual_seed(100 + rank)
    net = DistributedDataParallel(nn.Linear(20, 5))
    for parameter in net.parameters():
        expect_same_on_all_ranks(parameter.detach(), size)


@check
def every_gradient_byte_goes_through_the_backend(rank: int, size: int) -> None:
    net = DistributedDataParallel(model())
    gradient_bytes = sum(parameter.numel() * 4 for parameter in net.parameters())
    before = bytes_moved()
    train(net, *shard(rank, size))
    extra = bytes_moved() - before - STEPS * gradient_bytes
    assert 0 <= extra <= DDP_EXTRA_BYTES, f"{extra} bytes more than {STEPS} x {gradient_bytes}"
    before = bytes_moved()
    train(net, *shard(rank, size))
    assert bytes_moved() - before == STEPS * gradient_bytes


@check
def no_sync_moves_no_byte(rank: int, size: int) -> None:
    net = DistributedDataParallel(model())
    inputs, labels = shard(rank, size)
    before = bytes_moved()
    with net.no_sync():
        nn.functional.cross_entropy(net(inputs), labels).backward()
    assert bytes_moved() == before


@check
def compression_hooks_halve_the_bytes(rank: int, size: int) -> None:
    for hook in (default_hooks.bf16_compress_hook, default_hooks.fp16_compress_hook):
        net = DistributedDataParallel(model())
        net.register_comm_hook(None, hook)
        train(net, *shard(rank, size), steps=2)
        before = bytes_moved()
        train(net, *shard(rank, size), steps=1)
        assert bytes_moved() - before == sum(parameter.numel() * 2 for parameter in net.parameters())
        for ours in net.parameters():
            expect_same_on_all_ranks(ours.detach(), size)


@check
def a_wrong_sum_would_be_seen(rank: int, size: int) -> None:
    """The negative control of the tests above: with doubled gradients the training ends with other parameters."""

    def doubled(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        work = dist.all_reduce(bucket.buffer().div_(size), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] * 2)

    net = DistributedDataParallel(model())
    net.register_comm_hook(None, doubled)
    train(net, *shard(rank, size))
    expected = parameters_of_one_process()
    assert any(
        not torch.allclose(ours, value, rtol=1e-5, atol=1e-6)
        for ours, value in zip(net.parameters(), expected, strict=True)
    )


@check
def fsdp2_equals_one_process_on_the_whole_batch(rank: int, size: int) -> None:
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.full_tensor().detach(), expected, rtol=1e-5, atol=1e-6)


@check
def fsdp2_trains_in_bfloat16(rank: int, size: int) -> None:
    net = model()
    policy = torch.distributed.fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    fully_shard(net, mp_policy=policy)
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.full_tensor().detach(), expected, rtol=0.1, atol=0.02)


@check
def ddp_synchronises_buffers(rank: int, size: int) -> None:
    torch.manual_seed(1)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.Linear(16, CLASSES)))
    train(net, *shard(rank, size), steps=3)
    net(shard(rank, size)[0])  # a forward pass starts with a copy of rank 0's buffers
    net.eval()
    for parameter in net.parameters():
        expect_same_on_all_ranks(parameter.detach(), size)


SCRIPT = """
import torch, torch.distributed as dist
{imports}
dist.init_process_group("{backend}")
tensor = torch.full((10,), float(dist.get_rank() + 1))
dist.all_reduce(tensor)
assert tensor.eq(sum(range(1, dist.get_world_size() + 1))).all(), tensor
dist.barrier()
import tributary
assert tributary.info()["operations"] >= 1
dist.destroy_process_group()
"""


def torchrun(script: str, environment: dict[str, str]) -> str:
    """Runs the script. Returns an empty text if it ran without an error."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(script)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}, check=False
        )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def launched() -> tuple[int, int]:
    cases = {
        "torchrun starts ranks that import tributary.torch": (
            SCRIPT.format(imports="import tributary.torch", backend="tributary"),
            {},
        ),
        "torchrun starts ranks that import nothing": (SCRIPT.format(imports="", backend="tributary"), {}),
        "the backend can be named for only the cpu": (SCRIPT.format(imports="", backend="cpu:tributary"), {}),
        "PyTorch's own checks of calls wrap the backend": (
            SCRIPT.format(imports="", backend="tributary"),
            {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        ),
    }
    failed = 0
    for name, (script, environment) in cases.items():
        errors = torchrun(script, {"OMP_NUM_THREADS": "1", **environment})
        print(f"{'FAILED ' if errors else 'ok     '} {name}{':' if errors else ''}\n{errors}".rstrip())
        failed += bool(errors)
    return len(cases) - failed, failed


if __name__ == "__main__":
    without_service()
    finish([*(run(checks, size) for size in (2, 3, 4)), launched()])
