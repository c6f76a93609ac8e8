"""Callbacks for Keras' fit(), with Horovod's names."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tributary.tensorflow._collectives import Average, allreduce, broadcast_variables
from tributary.tensorflow._job import size


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """After the first batch, all ranks have root_rank's variables: those of the model and of the optimizer."""

    def __init__(self, root_rank: int) -> None:
        super().__init__()
        self._root_rank, self._done = root_rank, False

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if not self._done:
            broadcast_variables(self.model.variables, self._root_rank)
            broadcast_variables(self.model.optimizer.variables, self._root_rank)
            self._done = True


class MetricAverageCallback(keras.callbacks.Callback):
    """At the end of an epoch, the logs have the averages of all ranks. Put it before callbacks that use them."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        for name in sorted(logs or {}):
            logs[name] = float(allreduce(tf.constant(float(logs[name]), tf.float64), Average))


class LearningRateWarmupCallback(keras.callbacks.Callback):
    """The learning rate grows in the first epochs from initial_lr to initial_lr times the number of ranks."""

    def __init__(self, initial_lr: float, warmup_epochs: int = 5) -> None:
        super().__init__()
        self._initial_lr, self._epochs = initial_lr, warmup_epochs

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        part = min(1.0, (epoch + 1) / self._epochs) if self._epochs else 1.0
        self.model.optimizer.learning_rate = self._initial_lr * (1 + part * (size() - 1))
