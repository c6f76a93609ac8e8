"""Places in which the bench measures a cell: this one host, or hosts in network namespaces with shaped links."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import namespaces

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    name: str
    words: str
    link_bits_per_second: float | None = None  # shaped links between hosts; None: one host
    shared_memory: bool = False
    equal: bool = False  # true: the aggregators' links are as wide as the ranks' links

    @property
    def hosts(self) -> bool:
        return self.link_bits_per_second is not None


SETTINGS = {
    it.name: it
    for it in (
        Setting("loopback", "one host, TCP on loopback"),
        Setting("shm", "one host, shared memory", shared_memory=True),
        Setting("200mbit", "hosts with links of 200 Mbit/s", 200e6),
        Setting("1gbit", "hosts with links of 1 Gbit/s", 1e9),
        Setting("equal", "hosts with links of 1 Gbit/s, also for aggregators", 1e9, equal=True),
        Setting("equal-200mbit", "hosts with links of 200 Mbit/s, also for aggregators", 200e6, equal=True),
    )
}


@dataclass
class Place:
    """Hosts by name; on one host every name leads to it."""

    network: namespaces.Network | None = None
    hosts_file: Path | None = None
    interface: str = field(init=False)

    def __post_init__(self) -> None:
        self.interface = "eth0" if self.network else "lo"

    def address(self, host: str) -> str:
        return self.network.hosts[host].address if self.network else "127.0.0.1"

    def enter(self, host: str) -> list[str]:
        return self.network.hosts[host].enter() if self.network else []

    def call(self, host: str, function: Callable[[], T]) -> T:
        return self.network.hosts[host].call(function) if self.network else function()


def worker(rank: int) -> str:
    return f"worker-{rank}"


@contextlib.contextmanager
def prepare(
    setting: Setting, ranks: int, aggregator_hosts: list[str], folder: Path, congestion_control: str,
    queue_seconds: float | None = None,
) -> Iterator[Place]:  # fmt: skip
    """`aggregator_hosts` get links as fast as the machine, or, in a setting of equal links, links like the ranks'
    links. With an empty `congestion_control` the machine's congestion control stays."""
    if not setting.hosts:
        yield Place()
        return
    rates: dict[str, float | None] = {worker(rank): setting.link_bits_per_second for rank in range(ranks)}
    rates |= dict.fromkeys(aggregator_hosts, setting.link_bits_per_second if setting.equal else None)
    with namespaces.Network(rates, congestion_control, queue_seconds) as network:
        hosts_file = folder / "hosts"
        hosts_file.write_text(
            "".join(f"{host.address} {host.namespace} {host.name}\n" for host in network.hosts.values())
        )
        yield Place(network, hosts_file)
