"""The process's place in the job, and its communicator."""

from __future__ import annotations

import atexit
import ctypes
import sys
from typing import Any

import tensorflow as tf

from tributary import _launch, _meeting
from tributary._capi import Communicator, find, load

_START_SECONDS = 300.0


def _load_operators() -> tuple[Any, ctypes.CDLL]:
    from tributary._build import TENSORFLOW_LIBRARY

    load()
    path = find("libtributary-tensorflow.so", TENSORFLOW_LIBRARY)
    return tf.load_op_library(path), ctypes.CDLL(path)


operators, _library = _load_operators()
_launched: _launch.Launch | None = None
_communicator: Communicator | None = None


def init(*, seconds: float = _START_SECONDS) -> None:
    """Lets all ranks meet, within this time. Does nothing if they have met. Without a launcher, the process is alone."""
    global _launched, _communicator
    if _communicator is not None:
        return
    launched = _launch.find() or _launch.Launch(rank=0, size=1, local_rank=0, local_size=1, address="")
    made = Communicator(launched.rank, launched.size, _meeting.meet(launched, seconds))
    _library.tributary_tensorflow_use(made.handle, made.size)
    _launched, _communicator = launched, made


def shutdown() -> None:
    """Ends the group, when the calls of all ranks have ended."""
    global _launched, _communicator
    ended, _launched, _communicator = _communicator, None, None
    if ended is not None:
        _library.tributary_tensorflow_use(None, 1)
        ended.close()


@atexit.register
def _end() -> None:
    """After an uncaught exception, the other ranks get an error at once."""
    if _communicator is not None and getattr(sys, "last_value", None) is not None:
        _library.tributary_tensorflow_use(None, 1)
        _communicator.abort(f"the program of this rank ended with {type(sys.last_value).__name__}")
    shutdown()


def is_initialized() -> bool:
    return _communicator is not None


def _here() -> _launch.Launch:
    if _launched is None:
        raise ValueError("call tributary.tensorflow.init() first")
    return _launched


def rank() -> int:
    return _here().rank


def size() -> int:
    return _here().size


def local_rank() -> int:
    return _here().local_rank


def local_size() -> int:
    return _here().local_size


def info() -> dict[str, Any]:
    """Returns the counters of the communicator; the names are those of tributary.torch.Info."""
    _here()
    return _communicator.info()
