"""One process of the JAX check of scripts/gpu-check: sums between processes, which XLA makes by NCCL.

All processes may share the first GPU, if each has its own NCCL_HOSTID.
"""

from __future__ import annotations

import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def main() -> None:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    jax.distributed.initialize(
        f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", ranks, rank, local_device_ids=[0]
    )
    devices = jax.devices()
    if len(devices) != ranks:
        raise SystemExit(f"{len(devices)} devices instead of {ranks}")
    sharding = NamedSharding(Mesh(np.array(devices), ("ranks",)), PartitionSpec("ranks"))
    total = jax.jit(
        jax.shard_map(
            lambda part: jax.lax.psum(part, "ranks"),
            mesh=sharding.mesh,
            in_specs=PartitionSpec("ranks"),
            out_specs=PartitionSpec(),
        )
    )
    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32):
        for count in (1, 1000, 1 << 20):
            mine = (np.arange(count) * 3 + rank * 5) % 3 + 1
            whole = jax.make_array_from_process_local_data(sharding, mine[None].astype(dtype))
            expected = sum((np.arange(count) * 3 + r * 5) % 3 + 1 for r in range(ranks))
            got = np.asarray(total(whole).addressable_data(0))[0]
            if not np.array_equal(got, expected.astype(dtype)):
                raise SystemExit(f"rank {rank}: psum of {count} {dtype.__name__} is wrong: {got[:5]}")
    time.sleep(1)  # the plugin writes its counters every quarter of a second
    print(f"ok psum by JAX {jax.__version__} on {ranks} processes", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
