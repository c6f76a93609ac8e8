#!/usr/bin/env python3
"""One rank of a job that reduces until FOLDER/stop appears, and checks every element of every sum.

    job.py FOLDER RANK RANKS

Rank 0 passes the unique id to the other ranks in FOLDER/id. Rank 0 writes FOLDER/progress: operations, bytes
in-network, bytes by the fallback, and the number of losses of trees. The job uses the library of the packages.
"""

import array
import ctypes
import sys
import time
from pathlib import Path

COUNT = 4096  # int64 elements; the last one counts the ranks that want to stop
INT64, SUM, OK = 4, 0, 0


class Info(ctypes.Structure):
    """The first members of tributary_info."""

    _fields_ = [("struct_bytes", ctypes.c_size_t), ("path", ctypes.c_int)]
    _fields_ += [(name, ctypes.c_uint32) for name in ("epoch", "lanes", "levels", "window", "segment_bytes")]
    _fields_ += [(name, ctypes.c_uint64) for name in ("operations", "bytes_in_network", "bytes_fallback", "failovers")]


library = ctypes.CDLL("libtributary.so.0")
library.tributary_last_error.restype = ctypes.c_char_p
folder, rank, ranks = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def check(status: int, call: str) -> None:
    if status != OK:
        raise SystemExit(f"rank {rank}: {call}: {library.tributary_last_error(None).decode()}")


def write(path: Path, content: bytes) -> None:
    path.with_suffix(".new").write_bytes(content)
    path.with_suffix(".new").rename(path)


def meet() -> ctypes.c_void_p:
    unique = (ctypes.c_ubyte * 128)()
    if rank == 0:
        check(library.tributary_get_unique_id(unique), "tributary_get_unique_id")
        write(folder / "id", bytes(unique))
    while not (folder / "id").exists():
        time.sleep(0.02)
    unique[:] = (folder / "id").read_bytes()
    communicator = ctypes.c_void_p()
    check(library.tributary_comm_init_rank(ctypes.byref(communicator), ranks, unique, rank), "tributary_comm_init_rank")
    return communicator


def address(values: array.array) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.buffer_info()[0])


communicator = meet()
received = array.array("q", bytes(8 * COUNT))
written = 0.0
operation = 0
while received[COUNT - 1] == 0:
    begin = operation % 1000
    sent = array.array("q", range(begin * (rank + 1), (begin + COUNT) * (rank + 1), rank + 1))
    sent[COUNT - 1] = int((folder / "stop").exists())
    request = ctypes.c_void_p()
    check(library.tributary_all_reduce(address(sent), address(received), ctypes.c_size_t(COUNT), INT64, SUM, communicator,
                                       ctypes.byref(request)), "tributary_all_reduce")
    check(library.tributary_wait(request, ctypes.c_int64(-1)), "tributary_wait")
    total = ranks * (ranks + 1) // 2
    if received[:-1] != array.array("q", range(begin * total, (begin + COUNT) * total, total))[:-1]:
        raise SystemExit(f"rank {rank}: operation {operation} has a wrong sum")
    operation += 1
    if rank == 0 and time.monotonic() - written > 0.1:
        written = time.monotonic()
        info = Info(struct_bytes=ctypes.sizeof(Info))
        check(library.tributary_comm_info(communicator, ctypes.byref(info)), "tributary_comm_info")
        write(folder / "progress", f"{info.operations} {info.bytes_in_network} {info.bytes_fallback} {info.failovers}\n".encode())
    time.sleep(0.002)
check(library.tributary_comm_finalize(communicator), "tributary_comm_finalize")
check(library.tributary_comm_destroy(communicator), "tributary_comm_destroy")
print(f"rank {rank}: {operation} sums, all right")
