"""One rank of kills_test.py: trains a small network on scikit-learn's handwritten digits with one framework.

    train.py FRAMEWORK --steps N     ends after N steps
    train.py FRAMEWORK --until FILE  goes on until rank 0 finds the file

Rank 0 prints every tenth step. At the end each rank prints one line of JSON, with a digest of all parameters.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

STEPS_PER_LINE = 10
LEARNING_RATE = 0.1
HIDDEN, CLASSES = 48, 10


def digits(rank: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    whole = len(labels) // size * size
    return (images[rank:whole:size] / 16).astype(np.float32), labels[rank:whole:size].astype(np.int32)


def first_parameters() -> list[np.ndarray]:
    draw = np.random.default_rng(7)
    return [(draw.standard_normal((64, HIDDEN)) / 8).astype(np.float32), np.zeros(HIDDEN, np.float32),
            (draw.standard_normal((HIDDEN, CLASSES)) / 7).astype(np.float32), np.zeros(CLASSES, np.float32)]


class Torch:
    """DistributedDataParallel."""

    def __init__(self) -> None:
        import torch
        import torch.distributed as dist
        import tributary.torch  # noqa: F401: registers the backend

        torch.set_num_threads(1)
        dist.init_process_group("tributary")
        self.torch, self.dist, self.rank = torch, dist, dist.get_rank()
        images, labels = digits(self.rank, dist.get_world_size())
        self.images, self.labels = torch.tensor(images), torch.tensor(labels, dtype=torch.int64)
        net = torch.nn.Sequential(torch.nn.Linear(64, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, CLASSES))
        with torch.no_grad():
            for parameter, first in zip(net.parameters(), first_parameters(), strict=True):
                parameter.copy_(torch.tensor(first.T if first.ndim == 2 else first))
        self.model = torch.nn.parallel.DistributedDataParallel(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.torch.nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
        self.optimizer.step()

    def agree(self, decision: bool) -> bool:
        tensor = self.torch.tensor([decision], dtype=self.torch.uint8)
        self.dist.broadcast(tensor, 0)
        return bool(tensor.item())

    def parameters(self) -> Iterable[np.ndarray]:
        return [parameter.detach().numpy().T for parameter in self.model.parameters()]

    def end(self) -> None:
        self.dist.destroy_process_group()


class Jax:
    """shard_map, with jax.lax.pmean."""

    def __init__(self) -> None:
        import tributary.jax  # before jax

        import jax
        import jax.numpy as jnp
        from jax.experimental import multihost_utils
        from jax.sharding import Mesh, NamedSharding
        from jax.sharding import PartitionSpec as P

        tributary.jax.initialize()
        self.rank, self.broadcast = jax.process_index(), multihost_utils.broadcast_one_to_all
        mesh = Mesh(np.array(jax.devices()), ("processes",))

        def loss_of(parameters, images, labels):
            w1, b1, w2, b2 = parameters
            outputs = jnp.tanh(images @ w1 + b1) @ w2 + b2
            return -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1).mean()

        def step(parameters, images, labels):
            gradients = jax.lax.pmean(jax.grad(loss_of)(parameters, images, labels), "processes")
            return [value - LEARNING_RATE * gradient for value, gradient in zip(parameters, gradients, strict=True)]

        part = P("processes")
        self.next = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), part, part), out_specs=P(), check_vma=False))
        self.data = [jax.make_array_from_process_local_data(NamedSharding(mesh, part), one) for one in digits(self.rank, jax.process_count())]
        self.values = [jax.make_array_from_process_local_data(NamedSharding(mesh, P()), one) for one in first_parameters()]

    def step(self) -> None:
        self.values = self.next(self.values, *self.data)
        self.values[-1].block_until_ready()

    def agree(self, decision: bool) -> bool:
        return bool(self.broadcast(np.array(decision, np.int32)))

    def parameters(self) -> Iterable[np.ndarray]:
        return [np.asarray(value.addressable_data(0)) for value in self.values]

    def end(self) -> None:
        pass  # tributary.jax ends with the interpreter


class TensorFlow:
    """DistributedGradientTape in a tf.function."""

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf
        import tributary.tensorflow as hvd

        hvd.init()
        self.tf, self.hvd, self.rank = tf, hvd, hvd.rank()
        images, labels = (tf.constant(one) for one in digits(self.rank, hvd.size()))
        self.values = [tf.Variable(one) for one in first_parameters()]

        @tf.function
        def step() -> None:
            w1, b1, w2, b2 = self.values
            with tf.GradientTape() as tape:
                outputs = tf.tanh(images @ w1 + b1) @ w2 + b2
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))
            gradients = hvd.DistributedGradientTape(tape).gradient(loss, self.values)
            for variable, gradient in zip(self.values, gradients, strict=True):
                variable.assign_sub(LEARNING_RATE * gradient)

        self.step = step

    def agree(self, decision: bool) -> bool:
        return bool(self.hvd.broadcast(self.tf.constant(int(decision)), 0))

    def parameters(self) -> Iterable[np.ndarray]:
        return [value.numpy() for value in self.values]

    def end(self) -> None:
        self.hvd.shutdown()


class Mpi4py:
    """Allreduce of one array with all gradients, which this class computes."""

    def __init__(self) -> None:
        # Each rank is a host of its own, and MPI_Init() reads the variable.
        rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
        os.environ["TRIBUTARY_HOST_ID"] = f"node-{int(rank) + 1}"
        from mpi4py import MPI

        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank = self.comm.Get_rank()
        self.images, self.labels = digits(self.rank, self.comm.Get_size())
        self.values = first_parameters()

    def gradients(self) -> np.ndarray:
        w1, b1, w2, b2 = self.values
        hidden = np.tanh(self.images @ w1 + b1)
        outputs = hidden @ w2 + b2
        chances = np.exp(outputs - outputs.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        chances[np.arange(len(self.labels)), self.labels] -= 1
        chances /= len(self.labels)
        before = (chances @ w2.T) * (1 - hidden**2)
        return np.concatenate([one.ravel() for one in (self.images.T @ before, before.sum(0), hidden.T @ chances, chances.sum(0))])

    def step(self) -> None:
        gradients = self.gradients()
        self.comm.Allreduce(self.mpi.IN_PLACE, gradients, self.mpi.SUM)
        gradients /= self.comm.Get_size()
        place = 0
        for value in self.values:
            value -= LEARNING_RATE * gradients[place : place + value.size].reshape(value.shape)
            place += value.size

    def agree(self, decision: bool) -> bool:
        return self.comm.bcast(decision, 0)

    def parameters(self) -> Iterable[np.ndarray]:
        return self.values

    def end(self) -> None:
        self.mpi.Finalize()


FRAMEWORKS = {"torch": Torch, "jax": Jax, "tensorflow": TensorFlow, "mpi4py": Mpi4py}


def accuracy(parameters: list[np.ndarray]) -> float:
    images, labels = load_digits(return_X_y=True)
    w1, b1, w2, b2 = parameters
    return float(((np.tanh(images / 16 @ w1 + b1) @ w2 + b2).argmax(1) == labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="One rank of kills_test.py")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--until", type=Path)
    options = parser.parse_args()
    training = FRAMEWORKS[options.framework]()
    steps, more = 0, True
    while more:
        for _ in range(STEPS_PER_LINE):
            training.step()
        steps += STEPS_PER_LINE
        if training.rank == 0:
            print(f"step {steps}", flush=True)
        more = training.agree(not options.until.exists() if options.until else steps < options.steps)
    parameters = [np.ascontiguousarray(one) for one in training.parameters()]
    digest = hashlib.sha256(b"".join(one.tobytes() for one in parameters)).hexdigest()
    result = {"rank": training.rank, "steps": steps, "digest": digest, "accuracy": accuracy(parameters)}
    training.end()
    print(json.dumps(result), flush=True)


main()
