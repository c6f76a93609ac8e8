"""Tells torch.distributed that the backend "tributary" exists.

PyTorch calls register() through the package's entry points: 2.14 and later when the name is first used, earlier ones
at `import torch`. So it must be quick and must not fail; the extension, which may fail to load, is loaded for
the first process group.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed import Store

NAME = "tributary"


def register() -> None:
    """Registers the backend for CPU and CUDA tensors. May be called any number of times."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, NAME.upper()):
        return
    dist.Backend.register_backend(NAME, _create, devices=["cpu", "cuda"])


def _create(store: Store, rank: int, size: int, timeout: timedelta) -> object:
    from tributary.torch import create

    return create(store, rank, size, timeout)
