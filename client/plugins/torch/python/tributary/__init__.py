"""Tributary: collectives whose sums are made in the network.

    import torch.distributed as dist
    import tributary.torch

    dist.init_process_group("tributary")
    ...
    print(tributary.info())  # the path, and the bytes on each path

`tributary.jax` does the same for JAX on CPUs. The environment says where the service is and how to use it: TRIBUTARY_MANAGER, TRIBUTARY_TOKEN_FILE,
TRIBUTARY_HOST_ID, TRIBUTARY_PATH, TRIBUTARY_LANES (1 to 16; without it the manager plans as many lanes as save time).
Without TRIBUTARY_MANAGER the ranks exchange the data directly and reduce it themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from tributary.torch import Info

__version__ = "0.1.0"
__all__ = ["info"]


def info(group: ProcessGroup | None = None) -> Info:
    """Returns the counters of `group`'s communicator (default: of the whole job); see `tributary.torch.Info`."""
    from tributary.torch import info as torch_info

    return torch_info(group)
