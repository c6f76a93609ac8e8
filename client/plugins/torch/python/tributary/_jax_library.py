"""Finds and calls libtributary-jax.so. Neither JAX nor PyTorch is needed for this."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tributary._capi import ID_BYTES, TributaryError, find

_NAME = "libtributary-jax.so"
_loaded_before_this_module = f"/{_NAME}" in Path("/proc/self/maps").read_text()

_TEXT_BYTES = 2048
_FAILURE_BYTES = 256


def loads_into_jax(path: str) -> bool:
    """Lets JAX load the library at its import. Returns False if JAX was imported before, without the library."""
    if "jaxlib" not in sys.modules:
        os.environ["MPITRAMPOLINE_LIB"] = path
        return True
    return _loaded_before_this_module


class Library:
    """The library of this process. `path` is the name under which JAX loads the same copy."""

    def __init__(self) -> None:
        from tributary._build import JAX_LIBRARY

        self.path = find(_NAME, JAX_LIBRARY)
        try:
            self._library = ctypes.CDLL(self.path, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)  # as JAX loads it
        except OSError as error:
            raise ImportError(
                f"tributary.jax cannot load {_NAME} ({error}). If it was moved, name its directory in LD_LIBRARY_PATH."
            ) from error

    def unique_id(self) -> bytes:
        made, text = ctypes.create_string_buffer(ID_BYTES), ctypes.create_string_buffer(_TEXT_BYTES)
        self._check(self._library.tributary_jax_unique_id(made, text), text)
        return made.raw

    def start(self, rank: int, size: int, unique_id: bytes, timeout_seconds: float) -> None:
        """Lets all ranks meet."""
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        timeout_ms = ctypes.c_longlong(int(timeout_seconds * 1000))
        self._check(self._library.tributary_jax_start(rank, size, unique_id, timeout_ms, text), text)

    def info(self) -> dict[str, object] | None:
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        self._library.tributary_jax_info(text)
        return json.loads(text.value) if text.value else None

    def ask_at_end(self, failure: Callable[[], bytes]) -> None:
        """`failure` says at the end why the program fails, or b""; the other ranks then get an error at once."""

        def write(place: int) -> None:
            reason = failure()[: _FAILURE_BYTES - 1] + b"\0"
            ctypes.memmove(place, reason, len(reason))

        self._failure = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(write)  # kept as long as the library may call it
        self._library.tributary_jax_ask_at_end(self._failure)

    @staticmethod
    def _check(status: int, text: ctypes.Array[ctypes.c_char]) -> None:
        if status != 0:
            raise TributaryError(text.value.decode(errors="replace"))
