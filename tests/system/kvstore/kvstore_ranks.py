"""One worker of kvstore_test.py."""

import json

import mxnet as mx
import numpy as np
import tributary.kvstore


store = tributary.kvstore.create("dist_sync_device")
rank, size = store.rank, store.num_workers
total = sum(range(1, size + 1))


def ones(factor: float = 1.0) -> np.ndarray:
    return np.full((3, 50), factor, np.float32)


def expect(found: np.ndarray, value: float) -> None:
    assert np.array_equal(found, ones(value)), found[0, :4]


store.init("weight", ones(rank + 5))
found = ones(0)
store.pull("weight", out=found)
expect(found, 5)  # worker 0's
store.push("weight", [ones(rank + 1), ones(rank + 1)])  # two devices
several = [mx.nd.array(ones(0)), mx.nd.array(ones(0))]
store.pull("weight", out=several)
for one in several:
    expect(one.asnumpy(), 2 * total)
store.init(["a", "b"], [ones(1), ones(2)])
store.push(["a", "b"], [mx.nd.array(ones(rank)), mx.nd.array(ones(1))])
both = [ones(0), ones(0)]
store.pull(["a", "b"], out=both)
expect(both[0], total - size)
expect(both[1], size)


def descend(key: str, gradient: np.ndarray, weight: np.ndarray) -> None:
    weight -= 0.5 * gradient


store.set_updater(descend)
store.pushpull("a", ones(), out=found)
expect(found, total - size - size / 2)
store.broadcast("c", ones(7 + rank), out=found)
expect(found, 7)
for wrong in (lambda: store.push("missing", ones()), lambda: store.init("a", ones())):
    try:
        wrong()
    except (KeyError, ValueError):
        continue
    raise AssertionError("a wrong call had no error")
store.barrier()
print(json.dumps({"info": store.info()}), flush=True)
store.close()
