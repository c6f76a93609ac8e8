"""Trains a small network on scikit-learn's handwritten digits with MXNet, on several processes.

    tributary run --ranks 4 --aggregators 1 -- python examples/mxnet_digits.py

Each process has a part of the digits. The gradients go through a key-value store, whose updater moves the weights. The
first process prints the losses, and at the end one line of JSON.
"""

import argparse
import json

import mxnet as mx
import numpy as np
import tributary.kvstore
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()

LEARNING_RATE = 0.5
store = tributary.kvstore.create("dist_sync")


def digits() -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """Returns this process's part of the digits: every n-th one. One, two, three and four processes use the same."""
    images, labels = load_digits(return_X_y=True)
    part = slice(store.rank, len(labels) // 12 * 12, store.num_workers)
    return mx.nd.array(images[part] / 16), mx.nd.array(labels[part])


def descend(key: str, gradient: np.ndarray, weight: np.ndarray) -> None:
    weight -= np.float32(LEARNING_RATE / store.num_workers) * gradient


def outputs(weights: dict[str, mx.nd.NDArray], images: mx.nd.NDArray) -> mx.nd.NDArray:
    hidden = mx.nd.tanh(mx.nd.dot(images, weights["w1"]) + weights["b1"])
    return mx.nd.dot(hidden, weights["w2"]) + weights["b2"]


def main() -> None:
    images, labels = digits()
    numbers = np.random.default_rng(7)
    weights = {
        "w1": mx.nd.array(numbers.normal(0, 1 / 8, (64, 48))),
        "b1": mx.nd.zeros(48),
        "w2": mx.nd.array(numbers.normal(0, 1 / 7, (48, 10))),
        "b2": mx.nd.zeros(10),
    }
    names = list(weights)
    store.init(names, list(weights.values()))
    store.set_updater(descend)
    for weight in weights.values():
        weight.attach_grad()
    for number in range(options.steps):
        with mx.autograd.record():
            chosen = mx.nd.pick(mx.nd.log_softmax(outputs(weights, images)), labels)
            loss = -chosen.mean()
        loss.backward()
        store.push(names, [weights[name].grad for name in names])
        store.pull(names, out=[weights[name] for name in names])
        if store.rank == 0 and number % 10 == 0:
            print(f"step {number}: loss {float(loss.asscalar()):.4f}", flush=True)
    right = (outputs(weights, images).argmax(axis=1) == labels).mean()
    found = {"loss": float(loss.asscalar()), "accuracy": float(right.asscalar()), "info": store.info()}
    digest = float(sum(np.abs(weight.asnumpy().astype(np.float64)).sum() for weight in weights.values()))
    print(json.dumps(found | {"weights": digest}), flush=True)
    store.close()


main()
