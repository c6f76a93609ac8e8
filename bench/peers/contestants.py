"""The contestants, and the way to start each. To add a contestant, add a line to CONTESTANTS."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import processes
import service
from control import ContestantError, Measurement, Ranks
from places import Place, Setting, worker

MEET_SECONDS = 180.0
DRIVERS = Path(__file__).resolve().parent / "drivers"


@dataclass
class Stage:
    """The facts that all contestants of one setting and number of ranks share."""

    setting: Setting
    ranks: int
    place: Place
    build: Path  # Tributary's build folder
    peers_build: Path  # the build folder of the MPI drivers
    python: Path  # an interpreter with PyTorch
    mark: str
    tributary_environment: dict[str, str] = field(default_factory=dict)
    aggregator_settings: list[str] = field(default_factory=list)
    manager_settings: list[str] = field(default_factory=list)
    topology: bool = True  # the manager gets a topology

    @property
    def crowded(self) -> bool:
        """True if ranks are more than cores: a rank that spins then takes processor time from a rank that has work."""
        return self.ranks > (os.cpu_count() or 1)


@dataclass(frozen=True)
class Launch:
    """One process: the program of a rank, or a launcher of all ranks."""

    host: str
    command: list[str]
    environment: dict[str, str]


Launcher = Callable[[Stage, Path], Iterator[Launch]]


@dataclass(frozen=True)
class Contestant:
    name: str
    words: str
    launch: Launcher
    path: str  # the path that its ranks must report
    levels: int = 0  # levels of aggregators
    aggregators: int = 0  # number of aggregators with links like the ranks' links; the planner decides how to use them
    ours: bool = True
    shared_memory: bool = False
    network: bool = True
    default: bool = True  # it takes part where --contestants names nobody
    batch_max: int = 0  # allreduces in a sample; 0: as many as float32 allows
    build: Path | None = None  # another build folder of Tributary, whose programs it starts; None: the stage's

    def hosts(self) -> list[str]:
        """Returns the hosts that the contestant needs beside the workers' hosts."""
        return service.hosts_of(self.levels) if self.levels else service.equal_hosts(self.aggregators)

    def why_not(self, setting: Setting, ranks: int) -> str:
        """Returns the reason why the contestant takes no part in this setting; empty if it takes part."""
        if setting.shared_memory and not self.shared_memory:
            return "it has no path through shared memory"
        if not setting.shared_memory and not self.network:
            return "it is for ranks that share memory"
        if setting.equal and self.levels:
            return "its aggregators need wider links"
        if self.aggregators and not setting.equal:
            return "its aggregators have links like the ranks' links"
        if self.levels == 2 and ranks < 4:
            return "two levels of aggregators need four ranks: with one child below it an aggregator reduces nothing"
        return ""


def tributary_environment(stage: Stage, rank: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(stage.ranks),
        "TRIBUTARY_IFNAME": stage.place.interface,
        "TRIBUTARY_HOST_ID": "one-host" if stage.setting.shared_memory else worker(rank),
        "TRIBUTARY_LOCAL": "auto" if stage.setting.shared_memory else "off",
        "TRIBUTARY_SHM": "auto" if stage.setting.shared_memory else "off",
        "TRIBUTARY_LOG": "warn",
        "TRIBUTARY_TIMEOUT": "60",
        **stage.tributary_environment,
    }


def gloo_environment(stage: Stage, rank: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(stage.ranks),
        "GLOO_SOCKET_IFNAME": stage.place.interface,
        "OMP_NUM_THREADS": "1",
    }


def _tributary(stage: Stage, folder: Path) -> Iterator[Launch]:
    for rank in range(stage.ranks):
        yield Launch(
            worker(rank),
            [str(stage.build / "bench/peers/peers_tributary_driver"), str(folder / "id")],
            tributary_environment(stage, rank),
        )


def _tributary_exact(stage: Stage, folder: Path) -> Iterator[Launch]:
    for launch in _tributary(stage, folder):
        yield replace(launch, environment=launch.environment | {"TRIBUTARY_NUMERICS": "exact"})


def _of_type(launcher: Launcher, dtype: str) -> Launcher:
    def launch(stage: Stage, folder: Path) -> Iterator[Launch]:
        for it in launcher(stage, folder):
            yield replace(it, environment=it.environment | {"PEERS_TYPE": dtype})

    return launch


def _small_contestants() -> Iterator[Contestant]:
    """Sums of 16-bit floats, fast and exact, over one level, two levels, and between the ranks."""
    for dtype in ("float16", "bfloat16"):
        for kind, launcher in (("fast", _tributary), ("exact", _tributary_exact)):
            for levels in (1, 2, 0):
                yield Contestant(
                    f"{kind}-{dtype}-{levels or 'fallback'}",
                    f"{kind} sums of {dtype}, {levels or 'no'} level{'' if levels == 1 else 's'} of aggregators",
                    _of_type(launcher, dtype),
                    f"in-network-{levels}" if levels else "fallback",
                    levels=levels,
                    default=False,
                    batch_max=3,  # the sums of eight ranks stay in the range of float16
                )


def _tributary_registered(stage: Stage, folder: Path) -> Iterator[Launch]:
    for launch in _tributary(stage, folder):
        yield replace(launch, environment=launch.environment | {"PEERS_REGISTERED": "1"})


def _tributary_here(stage: Stage, folder: Path) -> Iterator[Launch]:
    for launch in _tributary(stage, folder):
        apart = {"TRIBUTARY_LOCAL": "off", "TRIBUTARY_HOST_ID": launch.host}  # the hosts of the topology
        yield replace(launch, environment=launch.environment | apart)


def _tributary_here_registered(stage: Stage, folder: Path) -> Iterator[Launch]:
    for launch in _tributary_here(stage, folder):
        yield replace(launch, environment=launch.environment | {"PEERS_REGISTERED": "1"})


def _gloo(stage: Stage, folder: Path) -> Iterator[Launch]:
    for rank in range(stage.ranks):
        yield Launch(
            worker(rank),
            [str(stage.python), "-B", str(DRIVERS / "gloo_driver.py"), str(folder / "store")],
            gloo_environment(stage, rank),
        )


def _openmpi(stage: Stage, _folder: Path) -> Iterator[Launch]:
    command = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    settings = {
        "pml": "ob1",
        "btl": "vader,self" if stage.setting.shared_memory else "tcp,self",
        "mpi_yield_when_idle": "1" if stage.crowded else "0",
    }
    if not stage.setting.shared_memory:
        settings["btl_tcp_if_include"] = stage.place.interface
    if stage.setting.hosts:
        settings |= {
            "plm_rsh_agent": str(DRIVERS / "enter-host"),
            "oob_tcp_if_include": stage.place.interface,
            "orte_leave_session_attached": "1",
        }
        command += ["--host", ",".join(f"{stage.place.address(worker(rank))}:1" for rank in range(stage.ranks))]
    for name, value in settings.items():
        command += ["--mca", name, value]
    yield Launch(worker(0), [*command, "-np", str(stage.ranks), str(stage.peers_build / "openmpi_driver")], {})


def _openmpi_tributary(stage: Stage, folder: Path) -> Iterator[Launch]:
    """Open MPI's program, unchanged, with the library that takes its collectives to Tributary. Ranks get their hosts' names in the topology."""
    library = stage.build / "client/plugins/mpi/libtributary-mpi-openmpi.so"
    settings = tributary_environment(stage, 0) | {"LD_PRELOAD": str(library), "TRIBUTARY_MPI_MIN_BYTES": "0", "TRIBUTARY_PATH": "in-network"}
    for name in ("RANK", "WORLD_SIZE", "TRIBUTARY_HOST_ID"):
        del settings[name]
    names = " ".join(worker(rank) for rank in range(stage.ranks))
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    for launch in _openmpi(stage, folder):
        *launcher, program = launch.command
        rank = f"set -- {names}; shift $OMPI_COMM_WORLD_RANK; TRIBUTARY_HOST_ID=$1 exec env {words} {shlex.quote(program)}"
        count = launcher.index("-np")
        passed = ["-x", "TRIBUTARY_MANAGER", "-x", "TRIBUTARY_TOKEN_FILE"]
        yield replace(launch, command=[*launcher[:count], *passed, *launcher[count:], "sh", "-c", rank])


def _mpich(stage: Stage, _folder: Path) -> Iterator[Launch]:
    command = ["mpirun.mpich"]
    environment = {"UCX_TLS": "shm,self" if stage.setting.shared_memory else "tcp,self"}
    if not stage.setting.shared_memory:
        environment |= {"UCX_NET_DEVICES": stage.place.interface, "MPIR_CVAR_NOLOCAL": "1"}
    if stage.setting.hosts:
        hosts = ",".join(f"{stage.place.address(worker(rank))}:1" for rank in range(stage.ranks))
        command += ["-launcher", "rsh", "-launcher-exec", str(DRIVERS / "enter-host")]
        command += ["-hosts", hosts, "-iface", stage.place.interface]
    else:
        command += ["-launcher", "fork"]
    program = str(stage.peers_build / "mpich_driver")
    yield Launch(worker(0), [*command, "-np", str(stage.ranks), program], environment)


CONTESTANTS = {
    it.name: it
    for it in (
        Contestant("tributary-1", "Tributary over one level of aggregators", _tributary, "in-network-1", levels=1),
        Contestant("tributary-2", "Tributary over two levels of aggregators", _tributary, "in-network-2", levels=2),
        Contestant("exact-1", "exact sums of Tributary over one level of aggregators", _tributary_exact, "in-network-1", levels=1, default=False),
        Contestant("exact-2", "exact sums of Tributary over two levels of aggregators", _tributary_exact, "in-network-2", levels=2, default=False),
        *(
            Contestant(
                f"tributary-equal-{count}",
                f"Tributary's defaults with {count} {'aggregator' if count == 1 else 'aggregators'}",
                _tributary,
                "in-network-1",
                aggregators=count,
            )
            for count in (1, 2, 4, 8)
        ),
        Contestant("tributary-fallback", "Tributary's fallback, no aggregator", _tributary, "fallback"),
        Contestant("exact-fallback", "the same with exact sums", _tributary_exact, "fallback", default=False),
        *_small_contestants(),
        Contestant("tributary-local", "Tributary in shared memory", _tributary, "local", shared_memory=True, network=False),
        Contestant("exact-local", "the same with exact sums", _tributary_exact, "local", shared_memory=True, network=False, default=False),
        Contestant(
            "tributary-registered",
            "Tributary in shared memory, buffers of its own allocator",
            _tributary_registered,
            "local",
            shared_memory=True,
            network=False,
        ),
        Contestant(
            "tributary-here",
            "Tributary over an aggregator on this host, by shared memory",
            _tributary_here,
            "in-network-1",
            levels=1,
            shared_memory=True,
            network=False,
        ),
        Contestant(
            "tributary-here-registered",
            "the same, buffers of its own allocator",
            _tributary_here_registered,
            "in-network-1",
            levels=1,
            shared_memory=True,
            network=False,
        ),
        Contestant("gloo", "Gloo through PyTorch", _gloo, "gloo", ours=False),
        Contestant("openmpi", "Open MPI", _openmpi, "mpi", ours=False, shared_memory=True),
        Contestant("openmpi-tributary", "Open MPI with Tributary's library, over one level of aggregators", _openmpi_tributary, "mpi", levels=1),
        Contestant("mpich", "MPICH", _mpich, "mpi", ours=False, shared_memory=True),
    )
}

BESIDE = "@beside"  # the end of the names of contestants from another build


def beside(contestant: Contestant, build: Path) -> Contestant:
    """Returns the same contestant with the programs of another build of Tributary."""
    return replace(contestant, name=contestant.name + BESIDE, words=f"{contestant.words} (the other build)", build=build)


def ours(name: str) -> bool:
    return CONTESTANTS[name.removesuffix(BESIDE)].ours


class Running:
    """A contestant whose ranks have met and wait for commands."""

    def __init__(self, contestant: Contestant, stage: Stage, folder: Path) -> None:
        self.contestant = contestant
        self._stage = replace(stage, build=contestant.build) if contestant.build else stage
        self._folder = folder
        self._service: service.Service | None = None
        self._launched: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._ranks: Ranks | None = None
        folder.mkdir()

    def start(self) -> None:
        socket = self._folder / "control"
        self._ranks = Ranks(socket, self._stage.ranks)
        environment = self._environment(socket)
        if self.contestant.levels or self.contestant.aggregators:
            environment |= self._start_service(environment)
        elif self.contestant.ours:
            environment["TRIBUTARY_PATH"] = "fallback" if self.contestant.network else "auto"
        for index, launch in enumerate(self.contestant.launch(self._stage, self._folder)):
            log = self._folder / f"launch-{index}.log"
            command = [*self._stage.place.enter(launch.host), *launch.command]
            log.write_text(f"{shlex.join(launch.command)}\n")
            self._launched.append((processes.spawn(command, environment | launch.environment, log), log))
        path = self._ranks.meet(MEET_SECONDS, self._check_alive)
        if path != self.contestant.path:
            raise ContestantError(f"its ranks reduce by {path}, not by {self.contestant.path}")

    def _environment(self, socket: Path) -> dict[str, str]:
        # Drop the settings that the caller made for these libraries: they are not part of the comparison.
        foreign = ("TRIBUTARY_", "OMPI_", "MPIR_", "UCX_", "GLOO_", "MASTER_", "LD_PRELOAD")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        if self._stage.place.hosts_file:
            kept["PEERS_HOSTS"] = str(self._stage.place.hosts_file)
        return kept | {processes.MARK: self._stage.mark, "PEERS_CONTROL": str(socket)}

    def _topology(self) -> str:
        rate = self._stage.setting.link_bits_per_second
        if not self._stage.topology:
            return ""
        if self.contestant.aggregators:
            return service.equal_topology(self._stage.ranks, self.contestant.aggregators, rate)
        return service.topology(self._stage.ranks, self.contestant.levels, rate)

    def _start_service(self, environment: dict[str, str]) -> dict[str, str]:
        try:
            self._service = service.Service(
                self._stage.place,
                self.contestant.hosts(),
                self._topology(),
                self._stage.build,
                self._folder,
                environment,
                self._stage.aggregator_settings,
                self._stage.manager_settings,
            )
            self._service.start()
        except service.ServiceError as error:
            raise ContestantError(str(error)) from error
        path = {"TRIBUTARY_PATH": "in-network"} if self.contestant.levels else {}
        return path | {
            "TRIBUTARY_MANAGER": self._service.url,
            "TRIBUTARY_TOKEN_FILE": self._service.job_token_file,
        }

    def _check_alive(self) -> None:
        for process, log in self._launched:
            if process.poll() is not None:
                raise ContestantError(f"it ended with exit code {process.returncode}:\n{processes.tail(log)}")

    def aggregator_cpu_seconds(self) -> float:
        return sum(map(processes.cpu_seconds, self._service.aggregator_processes())) if self._service else 0.0

    def all_cpu_seconds(self) -> float:
        ranks = sum(map(processes.cpu_seconds, self._ranks.processes())) if self._ranks else 0.0
        return ranks + self.aggregator_cpu_seconds()

    def ask(self, line: str, limit_seconds: float) -> list[str]:
        assert self._ranks is not None
        return self._ranks.ask(line, limit_seconds)

    def measure(self, size: int, samples: int, batch: int, limit_seconds: float) -> Measurement:
        assert self._ranks is not None
        return self._ranks.measure(size, samples, batch, limit_seconds)

    def kill_aggregator(self, host: str) -> None:
        assert self._service is not None
        self._service.kill(host)

    def stop(self) -> None:
        """Ends the ranks: they leave their loop when their sockets are closed."""
        if self._ranks:
            self._ranks.close()
        deadline = time.monotonic() + 10
        for process, _log in self._launched:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._service:
            self._service.stop()
