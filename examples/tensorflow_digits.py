"""Trains a small network on scikit-learn's handwritten digits with TensorFlow, on several processes.

    tributary run --ranks 4 --aggregators 1 -- python examples/tensorflow_digits.py

Each process has a part of the digits. --way chooses the program's form: a loop with DistributedGradientTape, or Keras'
fit() with DistributedOptimizer. The first process prints the losses, and at the end one line of JSON.
"""

import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
import tributary.tensorflow as hvd
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--way", choices=["tape", "keras"], default="tape")
parser.add_argument("--steps", type=int, default=200)
options = parser.parse_args()

LEARNING_RATE = 0.5


def digits() -> tuple[tf.Tensor, tf.Tensor]:
    """Returns this process's part of the digits: every n-th one. One, two, three and four processes use the same."""
    images, labels = load_digits(return_X_y=True)
    whole = len(labels) // 12 * 12 // hvd.size() * hvd.size()
    part = slice(hvd.rank(), whole, hvd.size())
    return tf.constant(images[part] / 16, tf.float32), tf.constant(labels[part], tf.int32)


def make_model() -> keras.Model:
    # Every rank begins with other numbers; broadcast_variables makes them equal.
    keras.utils.set_random_seed(7 + hvd.rank())
    return keras.Sequential([keras.Input((64,)), keras.layers.Dense(48, "tanh"), keras.layers.Dense(10)])


def say(step: int, loss: float) -> None:
    if hvd.rank() == 0 and step % 10 == 0:
        print(f"step {step}: loss {loss:.4f}", flush=True)


def train_with_tape(model: keras.Model, images: tf.Tensor, labels: tf.Tensor) -> None:
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    hvd.broadcast_variables(model.variables, root_rank=0)

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, model(images, training=True))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign_sub(LEARNING_RATE * gradient)
        return hvd.allreduce(loss)

    for number in range(options.steps):
        say(number, float(step()))


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        say(epoch, logs["loss"])


def train_with_keras(model: keras.Model, images: tf.Tensor, labels: tf.Tensor) -> None:
    hvd.broadcast_variables(model.variables, root_rank=0)
    model.compile(
        optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(LEARNING_RATE)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,  # XLA has no form of the collectives
    )
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback(), Report()]
    model.fit(images, labels, batch_size=len(labels), epochs=options.steps, verbose=0, shuffle=False, callbacks=callbacks)


def main() -> None:
    hvd.init()
    images, labels = digits()
    model = make_model()
    (train_with_tape if options.way == "tape" else train_with_keras)(model, images, labels)
    outputs = model(images)
    loss = hvd.allreduce(keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, outputs))
    right = tf.reduce_mean(tf.cast(tf.argmax(outputs, 1, tf.int32) == labels, tf.float32))
    accuracy = hvd.allreduce(right)
    if hvd.rank() == 0:
        print(json.dumps({"loss": float(loss), "accuracy": float(accuracy), "info": hvd.info()}), flush=True)


main()
