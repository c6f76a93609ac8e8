"""Tells torch.distributed that the backend "tributary" exists.

PyTorch calls register() through the package's entry points: version 2.14 and later at the first use of the name,
earlier versions at `import torch`. So register() must be quick and must not fail. The first process group loads the
extension, because this load may fail.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol

    from torch.distributed import Store

    class _Wanted(Protocol):
        """The process group that torch.distributed wants."""

        store: Store
        group_rank: int
        group_size: int
        timeout: timedelta

NAME = "tributary"


def register() -> None:
    """Registers the backend for CPU and CUDA tensors. It may be called several times."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])


def _create(wanted: _Wanted, options: object) -> object:
    from tributary.torch import create

    return create(wanted.store, wanted.group_rank, wanted.group_size, wanted.timeout, options)
