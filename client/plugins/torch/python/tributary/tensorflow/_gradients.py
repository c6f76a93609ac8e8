"""The gradients of all ranks: for loops with a tape, and for Keras' optimizers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tributary.tensorflow._collectives import Average, grouped_allreduce


class DistributedGradientTape:
    """A tape whose gradient() returns the reduction of all ranks' gradients."""

    def __init__(self, gradtape: tf.GradientTape, op: int = Average) -> None:
        self._tape, self._op = gradtape, op

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._tape.__exit__(*exception)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, **options: Any) -> Any:
        gradients = self._tape.gradient(target, sources, output_gradients, **options)
        flat = tf.nest.flatten(gradients)
        return tf.nest.pack_sequence_as(gradients, grouped_allreduce(flat, self._op))


def DistributedOptimizer(optimizer: Any, op: int = Average, name: str | None = None) -> Any:  # noqa: N802: Horovod's name
    """Returns a Keras optimizer that reduces the gradients of all ranks before it applies them."""
    original = type(optimizer)

    class Distributed(original):
        def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
            return super().apply(grouped_allreduce(list(grads), op), trainable_variables)

    Distributed.__name__ = name or original.__name__  # the name in a saved model
    return Distributed.from_config(optimizer.get_config())
