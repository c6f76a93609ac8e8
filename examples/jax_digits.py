"""Trains a small network on scikit-learn's handwritten digits with JAX, on several processes.

    tributary run --ranks 4 --aggregators 1 -- python examples/jax_digits.py

Each process has a part of the digits. --way chooses who writes the sum of the gradients: shard_map, where the program
calls jax.lax.pmean, or pjit, where XLA adds the collectives by itself. --collectives gloo runs the same training without
Tributary. The first process prints the losses, and at the end one line of JSON.
"""

import argparse
import json
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--way", choices=["shard_map", "pjit"], default="shard_map")
parser.add_argument("--collectives", choices=["tributary", "gloo"], default="tributary")
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()

if options.collectives == "tributary":
    import tributary.jax  # before jax, which looks for its library once, at its import

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits

LEARNING_RATE = 0.5


def start() -> None:
    if options.collectives == "tributary":
        tributary.jax.initialize()
    else:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        coordinator = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(coordinator, int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Returns this process's part of the digits: every n-th one."""
    images, labels = load_digits(return_X_y=True)
    rank, size = jax.process_index(), jax.process_count()
    whole = len(labels) // size * size
    return (images[rank:whole:size] / 16).astype(np.float32), labels[rank:whole:size].astype(np.int32)


def first_parameters() -> dict[str, jax.Array]:
    one, two = jax.random.split(jax.random.key(7))
    return {
        "w1": jax.random.normal(one, (64, 48)) / 8,
        "b1": jnp.zeros(48),
        "w2": jax.random.normal(two, (48, 10)) / 7,
        "b2": jnp.zeros(10),
    }


def outputs(parameters, images):
    return jnp.tanh(images @ parameters["w1"] + parameters["b1"]) @ parameters["w2"] + parameters["b2"]


def loss_of(parameters, images, labels):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(outputs(parameters, images)), labels[:, None], axis=1)
    return -chosen.mean()


def moved(parameters, gradients):
    return jax.tree.map(lambda value, gradient: value - LEARNING_RATE * gradient, parameters, gradients)


def make_step(mesh: Mesh):
    """Returns (parameters, images, labels) -> (parameters, loss)."""
    if options.way == "pjit":
        # The loss is the mean over the whole batch, which lies on all processes: XLA adds the sums.
        def step(parameters, images, labels):
            loss, gradients = jax.value_and_grad(loss_of)(parameters, images, labels)
            return moved(parameters, gradients), loss

        everywhere = NamedSharding(mesh, P())
        return jax.jit(step, out_shardings=(everywhere, everywhere))

    def step(parameters, images, labels):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, images, labels)
        loss, gradients = jax.lax.pmean((loss, gradients), "processes")
        return moved(parameters, gradients), loss

    part = P("processes")
    return jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), part, part), out_specs=(P(), P()), check_vma=False))


def main() -> None:
    start()
    mesh = Mesh(np.array(jax.devices()), ("processes",))
    by_parts, everywhere = NamedSharding(mesh, P("processes")), NamedSharding(mesh, P())
    images, labels = (jax.make_array_from_process_local_data(by_parts, part) for part in digits())
    parameters = jax.tree.map(
        lambda value: jax.make_array_from_process_local_data(everywhere, np.asarray(value)), first_parameters()
    )
    step = make_step(mesh)
    first = jax.process_index() == 0
    for number in range(options.steps):
        parameters, loss = step(parameters, images, labels)
        if first and number % 10 == 0:
            print(f"step {number}: loss {float(loss):.4f}", flush=True)
    local_images, local_labels = digits()
    guessed = np.asarray(outputs(jax.tree.map(lambda value: value.addressable_data(0), parameters), local_images))
    if first:
        found = {"loss": float(loss), "accuracy": float((guessed.argmax(1) == local_labels).mean())}
        if options.collectives == "tributary":
            found["info"] = tributary.jax.info()
        print(json.dumps(found), flush=True)


main()
