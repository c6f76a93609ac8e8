"""A key-value store with the functions of MXNet's KVStore, over Tributary.

    import tributary.kvstore

    store = tributary.kvstore.create()            # in place of mxnet.kv.create("dist_sync")
    store.init("weight", weight)
    store.push("weight", gradient)                # the sum of all workers' gradients
    store.pull("weight", out=weight)

There are no servers: each worker has all values, and sums what the workers push by one collective. Values are numpy
arrays, MXNet's NDArrays, or whatever has asnumpy() and takes a numpy array by value[:] = array. A list of values for a
key is the values of several devices; they are summed first. `priority` is ignored: all workers push and pull in the same
order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tributary import _launch, _meeting
from tributary._capi import Communicator

__all__ = ["KVStore", "create"]

_START_SECONDS = 300.0


def create(name: str = "dist_sync") -> KVStore:
    """Lets all workers meet, and returns the store. The launcher's variables say which worker this is."""
    if not name.startswith("dist") or "async" in name:
        raise ValueError(f"{name!r}: the store has only dist_sync, in which all workers push the same keys")
    launched = _launch.find() or _launch.Launch(rank=0, size=1, local_rank=0, local_size=1, address="")
    return KVStore(name, Communicator(launched.rank, launched.size, _meeting.meet(launched, _START_SECONDS)))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)


class KVStore:
    """One worker's store. Make it by create()."""

    def __init__(self, name: str, communicator: Communicator) -> None:
        self.type = name
        self._communicator = communicator
        self._values: dict[Any, np.ndarray] = {}
        self._updater: Callable[[Any, np.ndarray, np.ndarray], None] | None = None

    @property
    def rank(self) -> int:
        return self._communicator.rank

    @property
    def num_workers(self) -> int:
        return self._communicator.size

    def init(self, key: Any, value: Any) -> None:
        """Sets the first value of a key, or of a list of keys: worker 0's on all workers."""
        for one, its in self._pairs(key, value):
            if one in self._values:
                raise ValueError(f"the key {one!r} has a value already")
            self._values[one] = self._communicator.of_root(_array(_as_list(its)[0]), 0)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Gives the sum of all workers' values to the updater; without one, the sum becomes the key's value."""
        for one, its in self._pairs(key, value):
            stored = self._stored(one)
            total = self._communicator.sum(sum(_array(part) for part in _as_list(its)))
            if total.shape != stored.shape:
                raise ValueError(f"the key {one!r} has the shape {stored.shape}, and the pushed value {total.shape}")
            if self._updater is None:
                self._values[one] = total
            else:
                self._updater(one, total, stored)

    def pull(self, key: Any, out: Any, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Copies the key's value to `out`, or to each one of a list."""
        for one, its in self._pairs(key, out):
            for place in _as_list(its):
                place[:] = self._stored(one)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        self.init(key, value)
        self.pull(key, out, priority)

    def set_updater(self, updater: Callable[[Any, np.ndarray, np.ndarray], None]) -> None:
        """updater(key, sum, value) changes the value in place, on every worker alike."""
        self._updater = updater

    def barrier(self) -> None:
        self._communicator.barrier()

    def info(self) -> dict[str, Any]:
        """Returns the counters; the names are those of tributary.torch.Info."""
        return self._communicator.info()

    def close(self) -> None:
        self._communicator.close()

    def _stored(self, key: Any) -> np.ndarray:
        if key not in self._values:
            raise KeyError(f"the key {key!r} has no value; call init() first")
        return self._values[key]

    @staticmethod
    def _pairs(key: Any, value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(key, (list, tuple)):
            return [(key, value)]
        if len(key) != len(value):
            raise ValueError(f"{len(key)} keys, but {len(value)} values")
        return list(zip(key, value, strict=True))
