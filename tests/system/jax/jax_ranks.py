"""One process of jax_test.py: makes each collective of JAX on each type, and prints a digest of each result.

Arguments: tributary or gloo; the number of ways to split the processes is tested with four of them.
"""

import hashlib
import json
import os
import sys

if sys.argv[1] == "tributary":
    import tributary.jax

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_enable_x64", True)
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
OTHERS = ["float32", "float64", "bfloat16", "complex64", "complex128", "bool"]


def start() -> None:
    if sys.argv[1] == "tributary":
        tributary.jax.initialize()
        return
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    coordinator = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(coordinator, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))


def calls(dtype: str, size: int) -> dict:
    """Returns the collectives that all ways know for this type, each with the sharding of its result."""
    found = {
        "all_gather": (lambda part: lax.all_gather(part, "ranks"), P()),
        "all_to_all": (lambda part: lax.all_to_all(part, "ranks", 0, 0, tiled=True), P("ranks")),
        "ppermute around": (lambda part: lax.ppermute(part, "ranks", [(i, (i + 1) % size) for i in range(size)]), P("ranks")),
        "ppermute from one": (lambda part: lax.ppermute(part, "ranks", [(0, size - 1)]), P("ranks")),
    }
    if dtype != "bool":
        found["psum"] = (lambda part: lax.psum(part, "ranks"), P())
        found["psum_scatter"] = (lambda part: lax.psum_scatter(part, "ranks", tiled=True), P("ranks"))
    if dtype != "bool" and not dtype.startswith("complex"):
        found["pmax"] = (lambda part: lax.pmax(part, "ranks"), P())
        found["pmin"] = (lambda part: lax.pmin(part, "ranks"), P())
    return found


def main() -> None:
    start()
    rank, size = jax.process_index(), jax.process_count()
    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    digests = {}

    def run(name, function, mesh, in_specs, out_specs, mine) -> None:
        whole = jax.make_array_from_process_local_data(NamedSharding(mesh, in_specs), mine)
        mapped = jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
        result = np.asarray(jax.jit(mapped)(whole).addressable_data(0))
        digests[name] = f"{result.dtype} {result.shape} {hashlib.sha256(result.tobytes()).hexdigest()[:16]}"

    for dtype in (*INTEGERS, *OTHERS):
        # Sums of 8- and 16-bit integers wrap, and sums of floats are exact.
        mine = np.random.default_rng(5 + rank).integers(0, 100, (3 * size, 50)).astype(dtype)
        if dtype in ("int64", "uint64"):
            mine *= np.array(1 << 56, dtype)
        for name, (function, out) in calls(dtype, size).items():
            run(f"{name} of {dtype}", function, mesh, P("ranks"), out, mine)
    if size == 4:  # communicators of some processes: the rows, the columns, both
        square = Mesh(np.array(jax.devices()).reshape(2, 2), ("row", "column"))
        mine = np.arange(1000, dtype=np.int32) * (rank + 1)
        for axes in ("row", "column", ("row", "column")):
            spec = P(("row", "column"))
            run(f"psum over {axes}", lambda part, axes=axes: lax.psum(part, axes), square, spec, spec, mine)
    if sys.argv[1] == "tributary":
        print(json.dumps({"digests": digests, "info": tributary.jax.info()}), flush=True)
    else:
        print(json.dumps({"digests": digests}), flush=True)


main()
