"""TCP ports for programs under test whose port must be known before they listen."""

import random
import socket

# The system takes the ports of outgoing connections from 32768 to 60999. A port that a socket had for a moment through port 0 is one of those: a connection of any
# other test can take it before the program under test does.
PORTS = range(15000, 32001)
ATTEMPTS = 200


def can_listen(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("", port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Returns different ports at which no process listens, at any IPv4 address. Each stays free unless a process asks for it by number."""
    found = [port for port in random.sample(PORTS, ATTEMPTS) if can_listen(port)]
    if len(found) < count:
        raise OSError(f"of {ATTEMPTS} TCP ports between {PORTS.start} and {PORTS.stop - 1}, only {len(found)} are free")
    return found[:count]


def free_port() -> int:
    return free_ports(1)[0]
