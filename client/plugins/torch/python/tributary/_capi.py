"""libtributary's C interface, by ctypes: as much as the parts for TensorFlow and for key-value stores use."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

ID_BYTES = 128
_NAME = "libtributary.so.0"
_SUM = 0
_DTYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 8,
    "float64": 9,
    "int16": 12,
    "uint16": 13,
}  # numbers of tributary_dtype
_PATHS = ("fallback", "in-network", "local")


class TributaryError(RuntimeError):
    """A call of the library failed; the text says what is wrong, where, and what to do."""


class _Info(ctypes.Structure):
    """The beginning of tributary_info; the library fills as much as struct_bytes names."""

    _fields_ = (
        ("struct_bytes", ctypes.c_size_t),
        ("path", ctypes.c_int),
        ("epoch", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("levels", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
        ("segment_bytes", ctypes.c_uint32),
        ("operations", ctypes.c_uint64),
        ("bytes_in_network", ctypes.c_uint64),
        ("bytes_fallback", ctypes.c_uint64),
        ("failovers", ctypes.c_uint64),
        ("returns", ctypes.c_uint64),
        ("last_pause_us", ctypes.c_uint64),
        ("longest_pause_us", ctypes.c_uint64),
        ("reason", ctypes.c_char * 256),
        ("bytes_local", ctypes.c_uint64),
    )


def find(name: str, built: str) -> str:
    """Returns the place of a library: in a wheel's package, else where it was built; else the loader looks for it."""
    from tributary._build import BUNDLED

    place = Path(__file__).with_name(name) if BUNDLED else Path(built)
    return str(place) if place.is_file() else name


def load() -> ctypes.CDLL:
    """Loads libtributary, before any other library does.

    TensorFlow has a copy of OpenSSL's functions, for all to see. RTLD_DEEPBIND lets the library use OpenSSL's own.
    """
    from tributary._build import LIBRARY

    try:
        library = ctypes.CDLL(find(_NAME, LIBRARY), mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
    except OSError as error:
        raise ImportError(
            f"tributary cannot load {_NAME} ({error}). If it was moved, name its directory in LD_LIBRARY_PATH."
        ) from error
    library.tributary_last_error.restype = ctypes.c_char_p
    library.tributary_last_error.argtypes = [ctypes.c_void_p]
    return library


class Communicator:
    """One rank's end of a group. Its calls block, without the interpreter's lock."""

    def __init__(self, rank: int, size: int, unique_id: bytes) -> None:
        self._library = load()
        self.rank, self.size = rank, size
        self.handle = ctypes.c_void_p()
        given = (ctypes.c_ubyte * ID_BYTES).from_buffer_copy(unique_id)
        self._check(
            self._library.tributary_comm_init_rank(ctypes.byref(self.handle), size, ctypes.byref(given), rank), None
        )

    def _check(self, status: int, comm: ctypes.c_void_p | None) -> None:
        if status != 0:
            raise TributaryError(self._library.tributary_last_error(comm).decode(errors="replace"))

    def sum(self, values: Any) -> Any:
        """Returns the sum of all ranks' numpy arrays, which have the same shape and type."""
        return self._reduced(self._library.tributary_all_reduce, values, ctypes.c_int(_SUM))

    def of_root(self, values: Any, root: int) -> Any:
        """Returns root's numpy array."""
        return self._reduced(self._library.tributary_broadcast, values, ctypes.c_int(root))

    def barrier(self) -> None:
        self._check(self._library.tributary_barrier(self.handle, None), self.handle)

    def _reduced(self, call: Any, values: Any, argument: ctypes.c_int) -> Any:
        kind = _DTYPES.get(values.dtype.name)
        if kind is None:
            raise TypeError(f"arrays of {values.dtype.name} cannot be reduced; the library has {', '.join(_DTYPES)}")
        given = values.copy(order="C")
        result = given.copy()
        places = (ctypes.c_void_p(array.ctypes.data) for array in (given, result))
        self._check(call(*places, ctypes.c_size_t(given.size), kind, argument, self.handle, None), self.handle)
        return result

    def info(self) -> dict[str, Any]:
        found = _Info(struct_bytes=ctypes.sizeof(_Info))
        self._check(self._library.tributary_comm_info(self.handle, ctypes.byref(found)), self.handle)
        values = {name: getattr(found, name) for name, _ in _Info._fields_[1:]}
        return values | {"path": _PATHS[found.path], "reason": found.reason.decode(errors="replace")}

    def close(self) -> None:
        """Waits until the operations of all ranks have ended, unless the communicator has failed."""
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            self._library.tributary_comm_destroy(handle)

    def abort(self, reason: str) -> None:
        """Ends the operations of all ranks with an error that has this reason."""
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            self._library.tributary_comm_abort_because(handle, reason.encode()[:400])


def unique_id() -> bytes:
    library, made = load(), (ctypes.c_ubyte * ID_BYTES)()
    if library.tributary_get_unique_id(ctypes.byref(made)) != 0:
        raise TributaryError(library.tributary_last_error(None).decode(errors="replace"))
    return bytes(made)
