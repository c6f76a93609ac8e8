"""Finds and calls libtributary-jax.so. Neither JAX nor PyTorch is needed for this."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

_NAME = "libtributary-jax.so"
_loaded_before_this_module = f"/{_NAME}" in Path("/proc/self/maps").read_text()

ID_BYTES = 128
_TEXT_BYTES = 2048


class TributaryError(RuntimeError):
    """A call of the library failed; the text says what is wrong, where, and what to do."""


def _candidates() -> list[str]:
    """Returns the places of the library: in a wheel, where the package was built, and where the loader looks."""
    from tributary._build import JAX_LIBRARY

    places = [str(Path(__file__).with_name(_NAME)), JAX_LIBRARY]
    return [place for place in places if place and Path(place).exists()] + [_NAME]


def loads_into_jax(path: str) -> bool:
    """Lets JAX load the library at its import. Returns False if JAX was imported before, without the library."""
    if "jaxlib" not in sys.modules:
        os.environ["MPITRAMPOLINE_LIB"] = path
        return True
    return _loaded_before_this_module


class Library:
    """The library of this process. `path` is the name under which JAX loads the same copy."""

    def __init__(self) -> None:
        self.path = _candidates()[0]
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

    @staticmethod
    def _check(status: int, text: ctypes.Array[ctypes.c_char]) -> None:
        if status != 0:
            raise TributaryError(text.value.decode(errors="replace"))
