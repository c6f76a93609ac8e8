"""The backend "tributary" of torch.distributed. Importing this module registers it, for CPU and CUDA tensors.

    import torch.distributed as dist
    import tributary.torch

    dist.init_process_group("tributary")             # or "cpu:tributary", "cpu:gloo,cuda:tributary"
    model = torch.nn.parallel.DistributedDataParallel(model)

Every call of torch.distributed that gloo knows works, with these differences:

- Messages without a tag have tag 0. Between two ranks they arrive in the order of the sends. all_to_all with unequal
  parts sends such messages, in the same order. While a recv() without a source waits with tag 0, later recv() calls
  with tag 0 wait behind it. The first recv() without a source connects its rank to all lower ranks.
- The operations are SUM, AVG, PRODUCT, MIN, MAX and PREMUL_SUM, and for integers and torch.bool BAND, BOR and BXOR.
- all_reduce() sums sparse COO tensors of the CPU. Each rank gathers the entries of all ranks: memory and traffic grow
  with the number of ranks times the most entries of a rank. A rank's later calls start when all ranks have called it.
- pg_options=tributary.torch.Options(numerics="exact") gives a group's sums and averages the same bits on every path.
  Without it, TRIBUTARY_NUMERICS does so for all groups. `with tributary.torch.numerics("exact"):` does so for the calls
  inside. all_reduce() of sparse tensors adds on each rank, in the order of the ranks: the same bits on every path.
- tributary.torch.Options(check_values="count") counts NaN, infinities and subnormal numbers: after work.wait(), the
  work of a collective has statistics(). check_values="nan-fails" raises an error on every rank if an input has a NaN;
  its text names the rank. Without them, TRIBUTARY_CHECK_VALUES does so for all groups.
- A group with tributary.torch.Options(shrink=True) can go on without lost ranks, by dist.shrink_group([rank, ...]) on
  all ranks that stay. They name the same ranks. Calls of the old group that have not ended end with an error.
- The group's time-out is the communicator's time-out. If a rank is lost or hangs, every other rank gets a
  torch.distributed.DistBackendError within this time, and its text names the lost rank. A lost aggregator is no error.
- CUDA tensors go through pinned host memory.

When the interpreter ends, this module ends the groups that were not destroyed, in order if possible. After an uncaught
exception it aborts these groups, so that the other ranks get an error at once.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, cast

import torch.distributed as dist

from tributary._extension import _C
from tributary.registration import register

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from torch.distributed import ProcessGroup, Store

__all__ = ["Info", "Options", "Statistics", "Values", "create", "info", "library_version", "numerics"]


class Info(TypedDict):
    """A communicator's counters. Bytes are payload of ended collectives: this rank's input, for gathers its output."""

    path: str  # path of new operations: "in-network", "local" (within one host), "fallback", "host+tree", "host+ring"
    reason: str  # why this path was taken
    hosts: int  # for "host+tree" and "host+ring": number of hosts, each of which first reduces in its memory; else 0
    epoch: int  # generation of the trees; 0 before the first tree
    lanes: int  # number of lanes; 0 on the fallback
    levels: int  # number of aggregators between a rank and the result
    window: int  # number of segments
    segment_bytes: int
    operations: int
    bytes_in_network: int
    bytes_fallback: int
    bytes_local: int
    failovers: int  # number of trees that were lost while in use
    returns: int  # number of moves back to a tree
    last_pause_us: int  # microseconds from the last loss of a tree to the fallback's start
    longest_pause_us: int


class Values(TypedDict):
    """Counts of the elements of this rank's tensors."""

    elements: int
    nans: int
    infinities: int
    subnormals: int  # below the smallest normal number of the type, without zeros


class Statistics(TypedDict):
    """The result of work.statistics(), which is None if the group does not check values."""

    input: Values  # what this rank has sent
    result: Values  # what this rank has received
    relative_error_bound: float | None  # of finite results that are not subnormal; None: not known


@dataclass(frozen=True)
class Options:
    """Options of one process group: the argument pg_options of init_process_group() and new_group()."""

    numerics: str | None = None  # "fast", "wide" or "exact" (docs/numerics.md); None: TRIBUTARY_NUMERICS
    # "off", "count", or "nan-fails" (docs/numerics.md); None: TRIBUTARY_CHECK_VALUES
    check_values: str | None = None
    # True: dist.shrink_group() can go on without lost ranks. Each rank then keeps two more listeners open.
    shrink: bool = False


def create(store: Store, rank: int, size: int, timeout: timedelta, options: object = None) -> object:
    """Makes the backend of one process group, for torch.distributed. Returns when all ranks have met through `store`."""
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options is a {type(options).__name__}, but the backend takes tributary.torch.Options")
    options = options or Options()
    return _C.create(store, rank, size, timeout, options.numerics or "", options.check_values or "", options.shrink)


def info(group: ProcessGroup | None = None) -> Info:
    """Returns the counters of the communicator behind `group`, by default of the whole job's communicator.

    Raises ValueError if the group does not use the backend "tributary", and DistBackendError if it was shut down.
    """
    group = group or dist.distributed_c10d._get_default_group()
    for device in group._device_types:
        backend = group._get_backend(device)
        found = _C.info(getattr(backend, "wrapped_pg", backend))  # TORCH_DISTRIBUTED_DEBUG=DETAIL wraps the backend
        if found is not None:
            return cast(Info, found)
    raise ValueError(f'the process group "{group.group_name}" does not use the backend "tributary"')


def numerics(mode: str) -> AbstractContextManager[None]:
    """Sets the numerics of the calls inside the block, in place of their groups': "fast", "wide" or "exact".

        with tributary.torch.numerics("exact"):
            loss.backward()  # DDP's sums of gradients
            dist.all_reduce(loss)

    All ranks need the same numerics for a call. A call counts with the thread that makes it, and when it is made: its
    wait() may come after the block. Threads that PyTorch starts for a backward pass inside the block have its numerics,
    other threads do not, and callbacks of a future do not. Blocks may be nested: the inner one counts. In a group with
    fast numerics, trees of several levels have reserved no memory for exact sums, so these are slower there than with
    Options(numerics="exact"). The result also is a decorator.
    """
    if mode not in ("fast", "wide", "exact"):
        raise ValueError(f'numerics are {mode!r}; allowed are "fast", "wide" and "exact"')
    return _with_numerics(exact=mode != "fast")


@contextmanager
def _with_numerics(exact: bool) -> Iterator[None]:
    before = _C.choose_numerics(exact)
    try:
        yield
    finally:
        _C.choose_numerics(before)


def library_version() -> str:
    """Returns the version of the loaded libtributary."""
    return _C.library_version()


@atexit.register
def _close_all() -> None:
    _C.close_all(failed=getattr(sys, "last_value", None) is not None)


register()
