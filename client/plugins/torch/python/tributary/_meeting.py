"""Carries a group's unique id from rank 0 to the other ranks, over TCP at MASTER_ADDR:MASTER_PORT.

Each connection gets a random challenge, and the id only for the right answer: a hash of the challenge with the job's
token (TRIBUTARY_TOKEN_FILE). Without a token, every process that reaches the port during the start gets the id, as with
torchrun's store. A connection has five seconds, and rank 0 serves one after the other until all ranks have the id.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket
import time
from pathlib import Path

from tributary._capi import ID_BYTES, TributaryError, unique_id
from tributary._launch import Launch

_CHALLENGE_BYTES = 32
_ANSWER_BYTES = 36  # the rank, and the hash
_CONNECTION_SECONDS = 5.0
_RETRY_SECONDS = 0.05


def _secret() -> bytes:
    place = os.environ.get("TRIBUTARY_TOKEN_FILE", "")
    return Path(place).read_bytes().strip() if place else b""


def _answer(challenge: bytes, rank: int) -> bytes:
    number = rank.to_bytes(4, "big")
    return number + hmac.new(_secret(), b"tributary unique id" + challenge + number, hashlib.sha256).digest()


def _read(connection: socket.socket, count: int, until: float) -> bytes:
    """Reads `count` bytes until this time. A limit for each recv() alone would let a stranger send a byte now and then."""
    found = b""
    while len(found) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the connection's time is over")
        connection.settimeout(left)
        part = connection.recv(count - len(found))
        if not part:
            raise ConnectionError("the connection ended")
        found += part
    return found


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _serve(listener: socket.socket, size: int, made: bytes, deadline: float) -> None:
    waiting = set(range(1, size))
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TributaryError(f"the ranks {sorted(waiting)[:8]} did not ask rank 0 for the group's unique id in time")
        listener.settimeout(left)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        with connection:
            until = time.monotonic() + _CONNECTION_SECONDS
            connection.settimeout(_CONNECTION_SECONDS)
            try:
                challenge = secrets.token_bytes(_CHALLENGE_BYTES)
                connection.sendall(challenge)
                answer = _read(connection, _ANSWER_BYTES, until)
                rank = int.from_bytes(answer[:4], "big")
                if hmac.compare_digest(answer, _answer(challenge, rank)):
                    connection.sendall(made)
                    waiting.discard(rank)
            except OSError:
                continue  # a stranger, or a rank that will try again


def _fetch(address: tuple[str, int], rank: int, deadline: float) -> bytes:
    why = "no answer"
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(address, timeout=_CONNECTION_SECONDS) as connection:
                # Rank 0 serves one rank after the other, so this rank waits for its turn until the deadline.
                connection.sendall(_answer(_read(connection, _CHALLENGE_BYTES, deadline), rank))
                return _read(connection, ID_BYTES, deadline)
        except OSError as error:
            why = str(error)
        time.sleep(_RETRY_SECONDS)
    raise TributaryError(
        f"rank 0 did not give the group's unique id at {address[0]}:{address[1]} ({why}); all ranks need the same "
        "MASTER_ADDR, MASTER_PORT and token"
    )


def meet(launch: Launch, seconds: float) -> bytes:
    """Returns the unique id of a new group of all ranks."""
    if launch.size == 1:
        return unique_id()
    if not launch.address:
        raise ValueError("rank 0's address is not known: set MASTER_ADDR (and MASTER_PORT) on every rank")
    deadline = time.monotonic() + seconds
    host, port = _split(launch.address)
    if launch.rank != 0:
        return _fetch((host, port), launch.rank, deadline)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    with socket.create_server((host, port), family=family, backlog=1024) as listener:
        made = unique_id()
        _serve(listener, launch.size, made, deadline)
    return made
