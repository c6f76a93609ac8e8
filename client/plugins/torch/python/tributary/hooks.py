"""Hooks by which DDP and FSDP2 send gradients in another form, such as one of fewer bytes.

    import tributary.hooks

    model = DistributedDataParallel(model)
    model.register_comm_hook(tributary.hooks.Cast(torch.bfloat16), tributary.hooks.ddp)

    fully_shard(model)
    tributary.hooks.apply_to_fsdp(model, tributary.hooks.Cast(torch.bfloat16))

A form is an object with two methods, compress() and decompress(). The compressed tensors of all ranks are averaged
element by element, so the sum of two compressed tensors must be the compressed sum, up to rounding. With the backend
"tributary" a sum of 16-bit floats is rounded at each point of the way where a partial sum is made, and only once with
TRIBUTARY_NUMERICS=exact.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist

__all__ = ["Cast", "Form", "apply_to_fsdp", "ddp"]


class Form(Protocol):
    """The form in which gradients travel."""

    def compress(self, gradient: torch.Tensor) -> torch.Tensor:
        """Returns the tensor that travels. It may be `gradient` itself, which then is overwritten.

        For FSDP2 it must have as many elements as `gradient`, in the same order: each rank gets a part of them.
        """

    def decompress(self, travelled: torch.Tensor, into: torch.Tensor) -> None:
        """Writes the gradient that the averaged tensor stands for."""


class Cast:
    """Gradients travel in another type of numbers."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def compress(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.to(self.dtype)

    def decompress(self, travelled: torch.Tensor, into: torch.Tensor) -> None:
        into.copy_(travelled)


def ddp(form: Form | None, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket of gradients. With None as its form, it does what DDP does without a hook.

    The group is the default group; DistributedDataParallel must use it, too.
    """
    # DDP compares the annotations with the classes themselves, so this module has no deferred annotations.
    gradient = bucket.buffer()
    travelling = gradient if form is None else form.compress(gradient)
    work = dist.all_reduce(travelling, op=dist.ReduceOp.AVG, async_op=True)
    if work is None:
        raise RuntimeError("this process belongs to no process group")

    def finish(done: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        travelled = done.value()[0]
        if form is not None:
            form.decompress(travelled, gradient)
        return gradient

    return work.get_future().then(finish)


class _ReduceScatter:
    """The interface that FSDP2 has for its own reduce_scatter."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp,
        async_op: bool = False,
    ) -> None:
        if async_op:
            raise ValueError("a reduce_scatter with a form of its own cannot be asynchronous")
        travelling = self.form.compress(input_tensor)
        travelled = torch.empty_like(output_tensor, dtype=travelling.dtype)
        dist.reduce_scatter_tensor(travelled, travelling, op=op, group=group)
        self.form.decompress(travelled, output_tensor)


def apply_to_fsdp(module: torch.nn.Module, form: Form) -> None:
    """Lets all parts of a module that fully_shard() has sharded send their gradients in this form.

    The form is that of the reduce_scatter. HSDP's all_reduce between the replicas stays in the type in which FSDP2
    reduces.
    """
    from torch.distributed.fsdp import FSDPModule

    parts = [part for part in module.modules() if isinstance(part, FSDPModule)]
    if not parts:
        raise ValueError("no part of the module is sharded: call fully_shard() first")
    for part in parts:
        part.set_custom_reduce_scatter(_ReduceScatter(form))
