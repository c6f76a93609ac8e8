"""Collectives between the processes of JAX, on CPUs, go through Tributary.

    import tributary.jax             # before the first import of jax
    import jax

    tributary.jax.initialize()       # in place of jax.distributed.initialize()
    ...                              # jit, shard_map and pjit as always
    print(tributary.jax.info())      # the path, and the bytes on each path

JAX has a plug for MPI: it calls a library that MPITRAMPOLINE_LIB names. `initialize` puts libtributary-jax.so there,
which needs no MPI. JAX reads this variable once, at its import: so import this module before jax, or export
MPITRAMPOLINE_LIB with the library's path before the program starts. Each process has one device. Sums, products, least and greatest values (psum, psum_scatter, and what
pjit makes of shardings), all_gather, all_to_all and ppermute work.

- XLA adds bfloat16 as float32, and has no reduction of float16 and of smaller types for MPI. Complex numbers have only
  sums.
- The environment says where the service is and how to use it: TRIBUTARY_MANAGER, TRIBUTARY_TOKEN_FILE and the others.
- A lost aggregator is no error. A lost process is an error on every other process ("MPI error: MPI_Allreduce: ...") that
  names the lost rank.
- On GPUs, JAX makes its collectives by NCCL: use the NCCL plugin there, and not this module.
"""

from __future__ import annotations

import sys
from typing import Any

from tributary import _launch
from tributary._jax_library import Library, TributaryError, loads_into_jax

_library = Library()
_JAX_HAS_LIBRARY = loads_into_jax(_library.path)

import jax  # noqa: E402
from jax._src import distributed as _distributed  # noqa: E402

__all__ = ["TributaryError", "info", "initialize"]

_KEY = "tributary/unique_id"
_TIMEOUT_SECONDS = 300  # JAX's own

_started = False


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout_seconds: float = 0,
    **options: Any,
) -> None:
    """Starts JAX's processes as jax.distributed.initialize() does, and lets them make their collectives by Tributary.

    Call it once, before the first use of a device. An argument that is missing comes from the launcher's variables: RANK,
    WORLD_SIZE, MASTER_ADDR and MASTER_PORT of `tributary run` and torchrun, or those of Slurm and MPI; if there are none
    either, JAX itself looks for its launchers. `timeout_seconds` is TRIBUTARY_TIMEOUT: the time until a lost or hung
    process is an error. Other options go to jax.distributed.initialize().
    """
    global _started
    if not _JAX_HAS_LIBRARY:
        raise TributaryError(
            "JAX was imported before tributary.jax, and looks for its library once, at its import. Import tributary.jax "
            f"first, or start the program with MPITRAMPOLINE_LIB={_library.path}"
        )
    launch = _launch.find()
    if launch is not None:
        coordinator_address = coordinator_address or launch.address or None
        num_processes = launch.size if num_processes is None else num_processes
        process_id = launch.rank if process_id is None else process_id
    jax.config.update("jax_cpu_collectives_implementation", "mpi")
    # XLA makes the collectives of one program in the program's order. With asynchronous dispatch, two programs could make
    # their collectives at the same time, in another order on each process.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if _distributed.global_state.client is None:
        jax.distributed.initialize(coordinator_address, num_processes, process_id, **options)
    _meet(timeout_seconds)
    _library.ask_at_end(_failure)
    _started = True


def _failure() -> bytes:
    error = getattr(sys, "last_value", None)  # Python keeps an uncaught exception here
    return b"" if error is None else f"the program of this rank ended with {type(error).__name__}".encode()


def _meet(timeout_seconds: float) -> None:
    state = _distributed.global_state
    if state.process_id == 0:
        unique_id = _library.unique_id()
        state.client.key_value_set_bytes(_KEY, unique_id)
    else:
        unique_id = state.client.blocking_key_value_get_bytes(_KEY, int((timeout_seconds or _TIMEOUT_SECONDS) * 1000))
    _library.start(state.process_id, state.num_processes, unique_id, timeout_seconds)


def info() -> dict[str, Any]:
    """Returns the sums of this process's counters, and the path of the communicator of all processes.

    The names are those of tributary.torch.Info; "communicators" is the number of communicators.
    """
    found = _library.info() if _started else None
    if found is None:
        raise RuntimeError("call tributary.jax.initialize() first")
    return found
