"""Tests of what larger trainings use: hooks for gradients, device meshes, split groups, compiled functions."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import tributary.hooks
import tributary.torch
from ranks import DEVICE, Check, expect_equal, finish, run, values, without_service
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from training_test import bytes_moved, expect_same_on_all_ranks, model, parameters_of_one_process, shard, train

checks: list[Check] = []
checks_of_four: list[Check] = []


def check(function: Check) -> Check:
    checks.append(function)
    return function


def check_of_four(function: Check) -> Check:
    checks_of_four.append(function)
    return function


@check
def a_ddp_hook_without_a_form_is_ddp(rank: int, size: int) -> None:
    net = DistributedDataParallel(model())
    net.register_comm_hook(None, tributary.hooks.ddp)
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.detach(), expected, rtol=1e-5, atol=1e-6)


@check
def a_ddp_hook_sends_gradients_in_another_type(rank: int, size: int) -> None:
    net = DistributedDataParallel(model())
    net.register_comm_hook(tributary.hooks.Cast(torch.bfloat16), tributary.hooks.ddp)
    train(net, *shard(rank, size), steps=2)
    before = bytes_moved()
    train(net, *shard(rank, size), steps=3)
    assert bytes_moved() - before == 3 * sum(parameter.numel() * 2 for parameter in net.parameters())
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.detach(), expected, rtol=0.1, atol=0.02)
        expect_same_on_all_ranks(ours.detach(), size)


@check
def a_ddp_hook_takes_any_form(rank: int, size: int) -> None:
    class Halves:
        """Sends half the gradient, to show that both functions are called, and that their results count."""

        def compress(self, gradient: torch.Tensor) -> torch.Tensor:
            return gradient / 2

        def decompress(self, travelled: torch.Tensor, into: torch.Tensor) -> None:
            torch.mul(travelled, 2, out=into)

    net = DistributedDataParallel(model())
    net.register_comm_hook(Halves(), tributary.hooks.ddp)
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.detach(), expected, rtol=1e-5, atol=1e-6)


def sharded() -> nn.Module:
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    return net


def bytes_of_a_step(net: nn.Module, rank: int, size: int) -> int:
    train(net, *shard(rank, size), steps=1)
    before = bytes_moved()
    train(net, *shard(rank, size), steps=1)
    return bytes_moved() - before


@check
def fsdp2_sends_gradients_in_another_type(rank: int, size: int) -> None:
    whole = bytes_of_a_step(sharded(), rank, size)
    net = sharded()
    tributary.hooks.apply_to_fsdp(net, tributary.hooks.Cast(torch.bfloat16))
    halved = bytes_of_a_step(net, rank, size)
    gradients = sum(layer.weight.numel() + layer.bias.numel() for layer in model() if isinstance(layer, nn.Linear)) * 4
    # FSDP2 fills the last rank's part up with zeros.
    assert gradients // 2 <= whole - halved <= gradients // 2 + 2048, f"{whole} and {halved} of {gradients}"
    train(net, *shard(rank, size), steps=3)
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.full_tensor().detach(), expected, rtol=0.1, atol=0.02)


@check
def fsdp2_needs_a_sharded_module_for_a_form(rank: int, size: int) -> None:
    try:
        tributary.hooks.apply_to_fsdp(model(), tributary.hooks.Cast(torch.bfloat16))
    except ValueError as error:
        assert "fully_shard" in str(error)
    else:
        raise AssertionError("no error")


def every_functional_collective(tensor: torch.Tensor) -> torch.Tensor:
    group = dist.group.WORLD
    total = functional.all_reduce(tensor, "sum", group)
    everything = functional.all_gather_tensor(tensor, 0, group)
    part = functional.reduce_scatter_tensor(everything, "sum", 0, group)
    swapped = functional.all_to_all_single(everything, None, None, group)
    first = functional.broadcast(tensor, 0, group)
    return torch.cat([total, everything, part, swapped, first])


def expected_of_every(rank: int, size: int, count: int) -> torch.Tensor:
    each = [values(other, count) for other in range(size)]
    # Each rank gathers the same tensors, so the sum of its own part, and what all ranks send it, are this rank's tensor.
    return torch.cat([sum(each), *each, each[rank] * size, *[each[rank]] * size, each[0]])


@check
def functional_collectives_give_new_tensors(rank: int, size: int) -> None:
    tensor = values(rank, 1000)
    expect_equal(every_functional_collective(tensor), expected_of_every(rank, size, 1000))
    expect_equal(tensor, values(rank, 1000), "the argument")


@check
def compiled_functions_contain_the_collectives(rank: int, size: int) -> None:
    compiled = torch.compile(every_functional_collective, backend="aot_eager", fullgraph=True)
    for count in (1000, 24):
        expect_equal(compiled(values(rank, count)), expected_of_every(rank, size, count))


@check
def a_compiled_model_trains_in_ddp(rank: int, size: int) -> None:
    net = DistributedDataParallel(torch.compile(model(), backend="aot_eager"))
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.detach(), expected, rtol=1e-5, atol=1e-6)


@check
def distributed_tensors_change_their_layout(rank: int, size: int) -> None:
    mesh = init_device_mesh(DEVICE.type, (size,))
    whole = values(0, 24 * size).reshape(size * 6, 4)
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    expect_equal(rows.to_local(), whole[rank * 6 : rank * 6 + 6])
    expect_equal(rows.full_tensor(), whole)
    partial = DTensor.from_local(values(rank, 12), mesh, [torch.distributed.tensor.Partial()])
    expect_equal(partial.redistribute(mesh, [Replicate()]).to_local(), sum(values(r, 12) for r in range(size)))


@check
def tensor_parallel_layers_equal_whole_ones(rank: int, size: int) -> None:
    mesh = init_device_mesh(DEVICE.type, (size,))
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(8, 12 * size), nn.ReLU(), nn.Linear(12 * size, 8))
    inputs = values(0, 80).reshape(10, 8)
    expected = net(inputs)
    parallel = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    torch.testing.assert_close(parallel(inputs), expected, rtol=1e-5, atol=1e-5)


@check_of_four
def each_dimension_of_a_mesh_is_a_group(rank: int, size: int) -> None:
    mesh = init_device_mesh(DEVICE.type, (2, 2), mesh_dim_names=("replicas", "shards"))
    for name, others in {"replicas": [rank % 2, rank % 2 + 2], "shards": [rank // 2 * 2, rank // 2 * 2 + 1]}.items():
        group = mesh.get_group(name)
        tensor = values(rank, 100)
        dist.all_reduce(tensor, group=group)
        expect_equal(tensor, sum(values(other, 100) for other in others), name)
        assert tributary.torch.info(group)["operations"] >= 1


@check_of_four
def a_model_sharded_and_replicated_over_a_mesh_equals_one_process(rank: int, size: int) -> None:
    mesh = init_device_mesh(DEVICE.type, (2, 2), mesh_dim_names=("replicas", "shards"))
    net = model()
    fully_shard(net, mesh=mesh)
    train(net, *shard(rank, size))
    for ours, expected in zip(net.parameters(), parameters_of_one_process(), strict=True):
        torch.testing.assert_close(ours.full_tensor().detach(), expected, rtol=1e-5, atol=1e-6)


@check_of_four
def a_group_is_split(rank: int, size: int) -> None:
    world = dist.group.WORLD
    world.bound_device_id = torch.device("cpu", 0)  # PyTorch splits only groups with a device
    try:
        for splits, mine in (([[0, 1], [2, 3]], [rank // 2 * 2, rank // 2 * 2 + 1]), ([[0, 2, 3]], [0, 2, 3])):
            group = dist.split_group(split_ranks=splits)
            if rank not in mine:
                assert group is None
                continue
            assert dist.get_process_group_ranks(group) == mine
            tensor = values(rank, 50)
            dist.all_reduce(tensor, group=group)
            expect_equal(tensor, sum(values(other, 50) for other in mine))
            assert tributary.torch.info(group)["operations"] == 1
            dist.destroy_process_group(group)  # PyTorch counts each rank's groups in the names of later split groups
        # With an accelerator, new_group() calls this on ranks outside the new group.
        world._get_backend(torch.device("cpu")).perform_nocolor_split(torch.device("cpu", 0))
    finally:
        world.bound_device_id = None


@check_of_four
def a_split_group_keeps_the_options(rank: int, size: int) -> None:
    options = tributary.torch.Options(check_values="count")
    parent = dist.new_group([0, 1, 2, 3], pg_options=options)
    world = dist.group.WORLD
    world.bound_device_id = torch.device("cpu", 0)
    try:
        group = dist.split_group(parent_pg=parent, split_ranks=[[0, 1], [2, 3]])
    finally:
        world.bound_device_id = None
    work = dist.all_reduce(values(rank, 50), group=group, async_op=True)
    work.wait()
    assert work.statistics()["input"]["elements"] == 50


if __name__ == "__main__":
    without_service()
    finish([run(checks, 2), run(checks, 3), run(checks_of_four, 4)])
