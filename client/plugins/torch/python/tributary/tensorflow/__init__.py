"""Horovod's functions for TensorFlow and Keras, over Tributary.

    import tensorflow as tf
    import tributary.tensorflow as hvd

    hvd.init()
    ...
    tape = hvd.DistributedGradientTape(tape)                 # in a loop of your own
    optimizer = hvd.DistributedOptimizer(optimizer)          # with Keras: compile(..., jit_compile=False)
    hvd.broadcast_variables(model.variables, root_rank=0)

Start one process for each rank: `tributary run`, torchrun, srun or mpirun set the variables that init() reads. The
environment says where the service is: TRIBUTARY_MANAGER, TRIBUTARY_TOKEN_FILE and the others.

- Every rank makes the same calls in the same order. A tf.function keeps the order of the program; calls from several
  threads of Python have none.
- The calls are asynchronous operators of the CPU, with gradients. They run eagerly and in a tf.function. XLA has no form
  of them: a function with jit_compile=True ends with an error that names the operator, and automatic clusters leave the
  operators out.
- A lost aggregator is no error. A lost rank is tf.errors.AbortedError or DeadlineExceededError on every other rank.
"""

from __future__ import annotations

from tributary._capi import TributaryError
from tributary.tensorflow import callbacks
from tributary.tensorflow._collectives import (
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allreduce,
    alltoall,
    broadcast,
    broadcast_variables,
    grouped_allreduce,
    reducescatter,
)
from tributary.tensorflow._gradients import DistributedGradientTape, DistributedOptimizer
from tributary.tensorflow._job import info, init, is_initialized, local_rank, local_size, rank, shutdown, size

__all__ = [
    "Average",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "Max",
    "Min",
    "Product",
    "Sum",
    "TributaryError",
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "broadcast_variables",
    "callbacks",
    "grouped_allreduce",
    "info",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "rank",
    "reducescatter",
    "shutdown",
    "size",
]
