"""One rank of tensorflow_test.py: every call, eagerly and in a tf.function, against the results of numpy."""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import tributary.tensorflow as hvd

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def numbers(rank: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Returns small numbers, whose sums are exact in every type but the integers of 8 bits, which wrap."""
    values = np.random.default_rng(11 + rank).integers(0, 50, shape)
    return values.astype(tf.as_dtype(dtype).as_numpy_dtype)


def equal(found: tf.Tensor, expected: np.ndarray, what: str) -> None:
    found = np.asarray(found)
    assert found.dtype == expected.dtype and found.shape == expected.shape, f"{what}: {found.dtype} {found.shape}"
    assert found.tobytes() == expected.tobytes(), f"{what}: {found.ravel()[:6]} instead of {expected.ravel()[:6]}"


def check_reductions(run) -> None:
    for dtype in (*INTEGERS, *FLOATS):
        every = [numbers(rank, (5, 7), dtype) for rank in range(SIZE)]
        mine = tf.constant(every[RANK])
        wide = np.stack(every).astype("float64" if dtype in FLOATS else every[0].dtype)
        for op, expected in ((hvd.Sum, wide.sum(0, dtype=wide.dtype)), (hvd.Min, wide.min(0)), (hvd.Max, wide.max(0))):
            equal(run(lambda tensor, op=op: hvd.allreduce(tensor, op))(mine), expected.astype(every[0].dtype), f"{op} {dtype}")
    mean = run(lambda tensor: hvd.allreduce(tensor))(tf.constant(float(RANK)))
    assert abs(float(mean) - (SIZE - 1) / 2) < 1e-6
    group = [tf.constant(numbers(RANK, (3,), "float32")), tf.constant(numbers(RANK, (2, 2), "int32")), tf.constant(1.5)]
    for place, (found, tensor) in enumerate(zip(run(lambda *tensors: hvd.grouped_allreduce(tensors, hvd.Sum))(*group), group, strict=True)):
        single = hvd.allreduce(tensor, hvd.Sum)
        equal(found, np.asarray(single), f"part {place} of a group")


def check_movements(run) -> None:
    for dtype in ("bool", "int16", "float32", "complex64"):
        uneven = [numbers(rank, (rank + 1, 3), dtype) for rank in range(SIZE)]
        equal(run(hvd.allgather)(tf.constant(uneven[RANK])), np.concatenate(uneven), f"allgather {dtype}")
        equal(run(lambda tensor: hvd.broadcast(tensor, SIZE - 1))(tf.fill([4], tf.constant(uneven[RANK][0, 0]))),
              np.full(4, uneven[-1][0, 0]), f"broadcast {dtype}")
        blocks = [numbers(rank, (SIZE * 2, 3), dtype) for rank in range(SIZE)]
        equal(run(hvd.alltoall)(tf.constant(blocks[RANK])),
              np.concatenate([block[2 * RANK : 2 * RANK + 2] for block in blocks]), f"alltoall {dtype}")
    # Rank r sends r + i rows to rank i.
    rows = [[rank + other for other in range(SIZE)] for rank in range(SIZE)]
    sent = [numbers(rank, (sum(rows[rank]), 2), "int64") for rank in range(SIZE)]
    found, received = run(lambda tensor, splits: hvd.alltoall(tensor, splits))(tf.constant(sent[RANK]), tf.constant(rows[RANK]))
    begins = [sum(rows[rank][:RANK]) for rank in range(SIZE)]
    expected = [sent[rank][begins[rank] : begins[rank] + rows[rank][RANK]] for rank in range(SIZE)]
    equal(found, np.concatenate(expected), "alltoall with splits")
    equal(received, np.array([rows[rank][RANK] for rank in range(SIZE)]), "the rows of alltoall")
    whole = [numbers(rank, (2 * SIZE + 1, 2), "int32") for rank in range(SIZE)]
    parts = np.array_split(sum(whole), SIZE)
    equal(run(lambda tensor: hvd.reducescatter(tensor, hvd.Sum))(tf.constant(whole[RANK])), parts[RANK], "reducescatter")
    slices = tf.IndexedSlices(tf.fill([1, 2], float(RANK)), tf.constant([RANK]), tf.constant([SIZE, 2]))
    equal(tf.convert_to_tensor(hvd.allreduce(slices, hvd.Sum)), np.repeat(np.arange(SIZE, dtype="float32")[:, None], 2, 1), "slices")


def check_gradients(run) -> None:
    weight = float(RANK + 1)
    total = sum(range(1, SIZE + 1))

    def gradient(call, rows: int = 2 * SIZE) -> np.ndarray:
        def both(tensor):
            with tf.GradientTape() as tape:
                tape.watch(tensor)
                loss = tf.reduce_sum(call(tensor)) * weight
            return tape.gradient(loss, tensor)

        return np.asarray(run(both)(tf.ones([rows, 2])))

    same = np.ones([2 * SIZE, 2], "float32")
    equal(gradient(lambda tensor: hvd.allreduce(tensor, hvd.Sum)), same * total, "gradient of a sum")
    np.testing.assert_allclose(gradient(lambda tensor: hvd.allreduce(tensor)), same * total / SIZE)
    equal(gradient(hvd.allgather, RANK + 1), np.full([RANK + 1, 2], total, "float32"), "gradient of allgather")
    equal(gradient(lambda tensor: hvd.broadcast(tensor, 1)), same * (total if RANK == 1 else 0), "gradient of broadcast")
    equal(gradient(hvd.alltoall), np.repeat(np.repeat(np.arange(1, SIZE + 1, dtype="float32"), 2)[:, None], 2, 1), "gradient of alltoall")
    equal(gradient(lambda tensor: hvd.reducescatter(tensor, hvd.Sum)),
          np.repeat(np.repeat(np.arange(1, SIZE + 1, dtype="float32"), 2)[:, None], 2, 1), "gradient of reducescatter")


def check_xla() -> None:
    """XLA has no form of the operators, and says so."""
    try:
        tf.function(lambda tensor: hvd.allreduce(tensor), jit_compile=True)(tf.constant(1.0))
    except tf.errors.InvalidArgumentError as error:
        assert "TributaryAllreduce" in str(error), error
    else:
        raise AssertionError("a function for XLA ran")


def check_order() -> None:
    """A function makes its calls in the program's order, also those that do not depend on each other."""

    @tf.function
    def many(tensor):
        return [hvd.allreduce(tensor[:place], hvd.Sum) for place in range(1, 40)]

    for result in many(tf.ones([40])):
        assert np.all(np.asarray(result) == SIZE)


def check_errors() -> None:
    for wrong in (lambda: hvd.allreduce(tf.constant([True])), lambda: hvd.alltoall(tf.ones([2 * SIZE + 1]))):
        try:
            wrong()
        except tf.errors.InvalidArgumentError as error:
            assert "tributary: " in str(error), error
        else:
            raise AssertionError("a wrong call had no error")


for run in (lambda call: call, tf.function):
    check_reductions(run)
    check_movements(run)
    check_gradients(run)
check_xla()
check_order()
check_errors()
print(json.dumps({"info": hvd.info()}), flush=True)
