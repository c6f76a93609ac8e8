"""The collectives, and their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

import tensorflow as tf

from tributary.tensorflow._job import operators, rank, size


class _Reduction(IntEnum):
    """The numbers are those of tributary_op."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    AVERAGE = 4


Sum, Product, Min, Max, Average = _Reduction  # Horovod's names
_LINEAR = (Sum, Average)


def _linear(operator: tf.Operation, gradient: tf.Tensor) -> int:
    reduction = operator.get_attr("reduction")
    if reduction not in _LINEAR:
        raise LookupError(f"{operator.type} has a gradient only for Sum and Average, not for {_Reduction(reduction).name}")
    return reduction


@tf.RegisterGradient("TributaryAllreduce")
def _allreduce_gradient(operator: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return operators.tributary_allreduce(gradient, reduction=_linear(operator, gradient))


@tf.RegisterGradient("TributaryBroadcast")
def _broadcast_gradient(operator: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    total = operators.tributary_allreduce(gradient, reduction=Sum)
    return total if rank() == operator.get_attr("root") else tf.zeros_like(total)


@tf.RegisterGradient("TributaryAllgather")
def _allgather_gradient(operator: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return operators.tributary_reducescatter(gradient, reduction=Sum)


@tf.RegisterGradient("TributaryReducescatter")
def _reducescatter_gradient(operator: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    whole = operators.tributary_allgather(gradient)
    return whole / size() if _linear(operator, gradient) == Average else whole


@tf.RegisterGradient("TributaryAlltoall")
def _alltoall_gradient(operator: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return operators.tributary_alltoall(gradient)


def _allgather_equal(tensor: tf.Tensor) -> tf.Tensor:
    """Gathers tensors with the same first dimension on all ranks."""
    gathered = operators.tributary_allgather(tensor)
    first = None if tensor.shape.rank is None or tensor.shape[0] is None else tensor.shape[0] * size()
    gathered.set_shape([first, *tensor.shape[1:]] if tensor.shape.rank is not None else None)
    return gathered


def allreduce(tensor: Any, op: int = Average, name: str | None = None) -> Any:
    """Returns the reduction over all ranks; for tf.IndexedSlices, the slices of all ranks."""
    if isinstance(tensor, tf.IndexedSlices):
        if op not in _LINEAR:
            raise ValueError("tf.IndexedSlices have only Sum and Average")
        values = allgather(tensor.values)
        values = values / size() if op == Average else values
        return tf.IndexedSlices(values, allgather(tensor.indices), dense_shape=tensor.dense_shape)
    return operators.tributary_allreduce(tf.convert_to_tensor(tensor), reduction=int(op), name=name)


def grouped_allreduce(tensors: Sequence[Any], op: int = Average, name: str | None = None) -> list[Any]:
    """Reduces many tensors with one call for each type, because one large call is quicker than many small ones."""
    results: list[Any] = [None] * len(tensors)
    by_type: dict[tf.DType, list[int]] = {}
    for place, tensor in enumerate(tensors):
        if isinstance(tensor, tf.IndexedSlices):
            results[place] = allreduce(tensor, op)
        elif tensor is not None:
            by_type.setdefault(tf.convert_to_tensor(tensor).dtype, []).append(place)
    for places in by_type.values():
        parts = [tf.convert_to_tensor(tensors[place]) for place in places]
        whole = tf.concat([tf.reshape(part, [-1]) for part in parts], 0)
        pieces = tf.split(allreduce(whole, op, name), [tf.size(part) for part in parts])
        for place, part, piece in zip(places, parts, pieces, strict=True):
            results[place] = tf.ensure_shape(tf.reshape(piece, tf.shape(part)), part.shape)
    return results


def broadcast(tensor: Any, root_rank: int, name: str | None = None) -> tf.Tensor:
    """Returns root_rank's tensor. All ranks give tensors of the same shape."""
    return operators.tributary_broadcast(tf.convert_to_tensor(tensor), root=root_rank, name=name)


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Sets the variables of all ranks to those of root_rank."""
    for variable in variables:
        variable.assign(broadcast(variable, root_rank))


def _rows_of_all_ranks(rows: tf.Tensor) -> tf.Tensor:
    return _allgather_equal(tf.reshape(tf.cast(rows, tf.int64), [1]))


def allgather(tensor: Any, name: str | None = None) -> tf.Tensor:
    """Returns the tensors of all ranks, one after the other. Their first dimensions may differ."""
    del name
    tensor = tf.convert_to_tensor(tensor)
    if tensor.shape.rank == 0:
        tensor = tf.reshape(tensor, [1])
    rows = _rows_of_all_ranks(tf.shape(tensor)[0])
    return _without_padding(_allgather_equal(_padded(tensor, tf.reduce_max(rows))), rows)


def _padded(tensor: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    missing = rows - tf.cast(tf.shape(tensor)[0], tf.int64)
    more = tf.concat([tf.reshape(missing, [1]), tf.cast(tf.shape(tensor)[1:], tf.int64)], 0)
    return tf.concat([tensor, tf.zeros(more, tensor.dtype)], 0)


def _without_padding(parts: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Takes the first rows[i] rows of part i; all parts have the same length."""
    most = tf.shape(parts, tf.int64)[0] // tf.size(rows, tf.int64)
    return tf.boolean_mask(parts, tf.reshape(tf.sequence_mask(rows, most), [-1]))


def alltoall(tensor: Any, splits: Any = None, name: str | None = None) -> Any:
    """Sends part i of the tensor to rank i; returns the parts of all ranks for this rank.

    Without splits the parts are equal. With splits, the numbers of rows for each rank, it returns the result and the
    numbers of rows that came from each rank.
    """
    tensor = tf.convert_to_tensor(tensor)
    if splits is None:
        return operators.tributary_alltoall(tensor, name=name)
    sent = tf.cast(tf.convert_to_tensor(splits), tf.int64)
    received = operators.tributary_alltoall(sent)
    most = operators.tributary_allreduce(tf.reduce_max(sent), reduction=Max)
    parts = [_padded(part, most) for part in tf.split(tensor, tf.ensure_shape(sent, [size()]))]
    return _without_padding(operators.tributary_alltoall(tf.concat(parts, 0)), received), received


def reducescatter(tensor: Any, op: int = Average, name: str | None = None) -> tf.Tensor:
    """Returns this rank's rows of the reduction. If they do not divide evenly, the first ranks have one row more."""
    tensor = tf.convert_to_tensor(tensor)
    count = tf.shape(tensor, tf.int64)[0]
    least, more = count // size(), count % size()
    rows = least + tf.cast(tf.range(size(), dtype=tf.int64) < more, tf.int64)
    most = least + tf.cast(more > 0, tf.int64)
    parts = [_padded(part, most) for part in tf.split(tensor, tf.ensure_shape(rows, [size()]))]
    reduced = operators.tributary_reducescatter(tf.concat(parts, 0), reduction=int(op), name=name)
    reduced.set_shape([None, *tensor.shape[1:]] if tensor.shape.rank is not None else None)
    return reduced[: rows[rank()]]
