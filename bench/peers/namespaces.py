"""Hosts on one machine: network namespaces around a bridge, with links that are shaped in both directions.

MAC addresses are fixed and neighbour entries permanent, so that no ARP happens during a measurement. htb with a bfifo
below it shapes each link, on the host's interface and on its bridge port. The burst is two frames or 125 us of the
rate. Without a given depth, the queue is 4 ms of the rate, at least 256 KiB. gso_max_size is 0.5 ms of the rate,
because a longer segment would exceed the bucket, and at most an eighth of the queue, which drops a segment as a whole
where a switch drops single frames.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

MTU = 9000
FRAME_BYTES = MTU + 14
PREFIX = "peers-"
T = TypeVar("T")


class NamespaceError(Exception):
    """The text says which command failed, and how."""


def _ip(*arguments: str) -> str:
    command = ["ip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NamespaceError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _tc(namespace: str, *arguments: str) -> None:
    command = ["tc", "-n", namespace, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NamespaceError(f"{' '.join(command)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Host:
    name: str
    namespace: str
    address: str

    def enter(self) -> list[str]:
        """Returns the words to put before a command so that it runs on this host, under the host's name: Open MPI
        compares names."""
        return [
            "nsenter",
            f"--net=/run/netns/{self.namespace}",
            "unshare",
            "--uts",
            "sh",
            "-c",
            f'hostname {self.name} && exec "$@"',
            "sh",
        ]

    def call(self, function: Callable[[], T]) -> T:
        """Runs a function in a thread of this process that has moved to the namespace."""
        outcome: list[T] = []
        failure: list[BaseException] = []

        def run() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.namespace}", "rb") as place:
                if libc.setns(place.fileno(), 0) != 0:
                    failure.append(NamespaceError(f"setns {self.namespace}: {os.strerror(ctypes.get_errno())}"))
                    return
            try:
                outcome.append(function())
            except BaseException as error:  # the caller gets the exception
                failure.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]


def why_not() -> str:
    """Returns the reason why this process cannot make namespaces; empty if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        _ip("netns", "add", f"{PREFIX}{os.getpid()}-try")
        _ip("netns", "del", f"{PREFIX}{os.getpid()}-try")
    except (NamespaceError, FileNotFoundError) as error:
        return f"network namespaces cannot be made here: {error}"
    return ""


def remove_of(owner: int) -> None:
    """Removes all namespaces of a process that has ended."""
    try:
        lines = _ip("netns", "list").splitlines()
    except (NamespaceError, FileNotFoundError):
        return
    for name in (line.split()[0] for line in lines if line.startswith(f"{PREFIX}{owner}-")):
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Network:
    """Hosts by name, with one link each; rate None means as fast as the machine. Use it as a context."""

    def __init__(
        self, rates: dict[str, float | None], congestion_control: str = "", queue_seconds: float | None = None
    ) -> None:
        self._rates, self._congestion_control, self._queue_seconds = rates, congestion_control, queue_seconds
        self._switch = f"{PREFIX}{os.getpid()}-switch"
        self.hosts = {
            name: Host(name, f"{PREFIX}{os.getpid()}-{name}", f"10.77.0.{index + 1}")
            for index, name in enumerate(rates)
        }

    def __enter__(self) -> Network:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def reshape(self, name: str, rate: float) -> None:
        """Gives a host's shaped link another rate, while packets are under way. The queue keeps its size in bytes."""
        index = list(self.hosts).index(name)
        _reshape(self.hosts[name].namespace, "eth0", rate)
        _reshape(self._switch, f"port{index}", rate)

    def _make(self) -> None:
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
        _ip("-n", self._switch, "link", "set", "bridge", "mtu", str(MTU), "up")
        for index, host in enumerate(self.hosts.values()):
            self._add(index, host, self._rates[host.name])
        for host in self.hosts.values():
            for index, other in enumerate(self.hosts.values()):
                if other is not host:
                    neighbour = ["neigh", "add", other.address, "lladdr", _mac(index), "dev", "eth0"]
                    _ip("-n", host.namespace, *neighbour, "nud", "permanent")

    def _add(self, index: int, host: Host, rate: float | None) -> None:
        _ip("netns", "add", host.namespace)
        _sysctl(host.namespace, "net.ipv6.conf.all.disable_ipv6=1", needed=False)
        if self._congestion_control:
            _check_allowed(self._congestion_control)
            _sysctl(host.namespace, f"net.ipv4.tcp_congestion_control={self._congestion_control}")
        port = f"port{index}"
        _ip("-n", self._switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace)
        _ip("-n", self._switch, "link", "set", port, "mtu", str(MTU), "master", "bridge", "up")
        _ip("-n", host.namespace, "link", "set", "lo", "up")
        _ip("-n", host.namespace, "link", "set", "eth0", "address", _mac(index), "mtu", str(MTU), "up")
        _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", "eth0")
        if rate is not None:
            burst = str(gso_bytes(rate, queue_bytes(rate, self._queue_seconds)))
            _ip("-n", host.namespace, "link", "set", "eth0", "gso_max_size", burst)
            _shape(host.namespace, "eth0", rate, self._queue_seconds)
            _shape(self._switch, port, rate, self._queue_seconds)

    def _remove(self) -> None:
        for host in self.hosts.values():
            subprocess.run(["ip", "netns", "del", host.namespace], capture_output=True)
        subprocess.run(["ip", "netns", "del", self._switch], capture_output=True)


def _check_allowed(congestion_control: str) -> None:
    """Linux lets a network namespace use only the congestion controls on the machine's list."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().strip()
    if congestion_control not in allowed.split():
        wanted = f"{allowed} {congestion_control}"
        raise NamespaceError(
            f"this machine lets namespaces use only {allowed}; to allow {congestion_control} until the next start: "
            f'sysctl -w net.ipv4.tcp_allowed_congestion_control="{wanted}"'
        )


def _sysctl(namespace: str, assignment: str, needed: bool = True) -> None:
    command = ["nsenter", f"--net=/run/netns/{namespace}", "sysctl", "-qw", assignment]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and needed:
        raise NamespaceError(f"{' '.join(command)}: {done.stderr.strip()}")


def _mac(index: int) -> str:
    return f"02:00:00:00:00:{index + 1:02x}"


def _rate_of_class(rate: float) -> list[str]:
    burst = str(int(max(2 * FRAME_BYTES, rate / 8 * 125e-6)))
    return ["rate", f"{int(rate)}bit", "burst", burst, "cburst", burst, "quantum", str(FRAME_BYTES)]


def queue_bytes(rate: float, seconds: float | None) -> int:
    """A queue must hold at least a few frames; otherwise no frame would pass."""
    if seconds is None:
        return int(max(256 * 1024, rate / 8 * 4e-3))
    return int(max(4 * FRAME_BYTES, rate / 8 * seconds))


def gso_bytes(rate: float, queue: int) -> int:
    """The most bytes that pass as one packet: half a millisecond, and an eighth of the queue, which drops it whole."""
    return int(min(65536, max(2 * FRAME_BYTES, min(rate / 8 * 0.5e-3, queue / 8))))


def _shape(namespace: str, device: str, rate: float, queue_seconds: float | None) -> None:
    queue = str(queue_bytes(rate, queue_seconds))
    _tc(namespace, "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "1")
    _tc(namespace, "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb", *_rate_of_class(rate))
    _tc(namespace, "qdisc", "add", "dev", device, "parent", "1:1", "handle", "10:", "bfifo", "limit", queue)


def _reshape(namespace: str, device: str, rate: float) -> None:
    _tc(namespace, "class", "change", "dev", device, "parent", "1:", "classid", "1:1", "htb", *_rate_of_class(rate))
