"""A Slurm on this machine: munged, slurmctld and eight slurmd, each for one node; and Tributary's daemons."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ADDRESS = "10.77.0.1"
NODES = 8
MANAGER = f"http://{ADDRESS}:7470"
USER = 65534  # nobody: a user of the cluster
OTHER = 2  # bin: another user

SLURM_CONF = """\
ClusterName=tributary
SlurmctldHost=slurmtest({address})
AuthType=auth/munge
CryptoType=crypto/munge
SlurmUser=root
PluginDir={work}/plugins
PlugStackConfig=/etc/slurm/plugstack.conf
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool-%n
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
TopologyPlugin=topology/tree
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=10
KillWait=2
MessageTimeout=10
SchedulerParameters=batch_sched_delay=0,sched_interval=1
Licenses=tributary:2
PrologSlurmctld={programs}/prolog
EpilogSlurmctld={programs}/epilog
MailProg=/bin/true
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=NO
"""


def until(seconds: float, what: str, condition: Callable[[], Any]) -> Any:
    """Calls `condition` ten times a second, and returns its first true answer."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"within {seconds} s, this did not come true: {what}")
        time.sleep(0.1)
    return answer


class Cluster:
    def __init__(self, work: Path, build: Path) -> None:
        self.work = work
        self.build = build
        self.tributary = self.installed()
        self.programs = Path(__file__).resolve().parents[3] / "packaging/slurm"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def installed(self) -> Path:
        """Copies the command and its library to a folder that every user can read, because the build may not be
        readable."""
        folder = self.work / "bin"
        folder.mkdir()
        shutil.copy(self.build / "client/libtributary.so.0", folder)
        return Path(shutil.copy(self.build / "client/cli/tributary", folder))

    def log(self, name: str) -> str:
        return (self.work / f"{name}.log").read_text(errors="replace")

    def spawn(self, name: str, *command: str | Path, user: int | None = None) -> None:
        with (self.work / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=user)

    def stop(self, name: str, kill: bool = False) -> None:
        process = self.processes.pop(name)
        process.kill() if kill else process.terminate()
        process.wait(timeout=30)

    # Slurm

    def start_munge(self) -> None:
        munge = int(subprocess.run(["id", "-u", "munge"], check=True, capture_output=True, text=True).stdout)
        Path("/etc/munge/munge.key").write_bytes(os.urandom(128))
        for path, mode in (("/etc/munge", 0o700), ("/etc/munge/munge.key", 0o400), ("/run/munge", 0o755)):
            Path(path).mkdir(exist_ok=True) if path == "/run/munge" else None
            os.chown(path, munge, munge)
            os.chmod(path, mode)
        state = self.work / "munge-state"
        state.mkdir()
        os.chown(state, munge, munge)
        os.chmod(state, 0o755)
        self.spawn("munged", "munged", "--foreground", "--socket=/run/munge/munge.socket.2", f"--seed-file={state}/seed", f"--pid-file={state}/pid",
                   f"--log-file={state}/log", user=munge)
        until(10, "munged answers", lambda: subprocess.run(["munge", "-n"], check=False, capture_output=True).returncode == 0)

    def start_slurm(self) -> None:
        nodes = "\n".join(f"NodeName=n{i} NodeHostname=slurmtest NodeAddr={ADDRESS} Port={17000 + i} CPUs=1 RealMemory=100" for i in range(NODES))
        Path("/etc/slurm/slurm.conf").write_text(SLURM_CONF.format(address=ADDRESS, work=self.work, nodes=nodes, programs=self.programs))
        Path("/etc/slurm/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        Path("/etc/slurm/topology.conf").write_text("SwitchName=leaf0 Nodes=n[0-3]\nSwitchName=leaf1 Nodes=n[4-7]\nSwitchName=spine Switches=leaf[0-1]\n")
        shutil.copy(self.programs / "plugstack.conf", "/etc/slurm/plugstack.conf")
        (self.work / "state").mkdir()
        self.spawn("slurmctld", "slurmctld", "-D")
        for i in range(NODES):
            (self.work / f"spool-n{i}").mkdir()
            self.start_node(i)
        until(40, "all nodes are idle", lambda: self.run("sinfo", "--noheader", "--format=%T %D").stdout.split() == ["idle", str(NODES)])

    def start_node(self, number: int) -> None:
        self.spawn(f"n{number}", "slurmd", "-D", "-N", f"n{number}")

    # Tributary

    def configure_jobs(self, token: str) -> None:
        Path("/etc/tributary/slurm.conf").write_text(f"manager = {MANAGER}\ntoken_file = /etc/tributary/job.token\n")
        Path("/etc/tributary/job.token").write_text(token)
        os.chmod("/etc/tributary/job.token", 0o600)

    def configure_own_tokens(self, scopes: str = "tokens", settings: str = "") -> None:
        """From now on each job gets a token of its own; the nodes and the controller hold an operator's token."""
        key = self.work / "manager-state/identity.keys"
        made = self.run(self.tributary, "token", "make", "--role", "operator", "--name", "slurm", "--scope", scopes, "--life", "1h", "--key-file", key)
        assert made.returncode == 0, made.stderr
        self.configure_jobs(made.stdout)
        file = Path("/etc/tributary/slurm.conf")
        file.write_text(file.read_text() + f"{settings}job_token_life = 1h\ncommand = {self.work}/bin/with-library\n")
        # The node's prolog has no LD_LIBRARY_PATH; an installed command finds its library without this variable.
        command = self.work / "bin/with-library"
        command.write_text(f"#!/bin/sh\nLD_LIBRARY_PATH={self.work}/bin exec {self.tributary} \"$@\"\n")
        command.chmod(0o755)

    def ask(self, path: str) -> dict[str, Any]:
        """Returns the manager's answer to an administrator."""
        key = self.work / "manager-state/identity.keys"
        token = self.run(self.tributary, "token", "make", "--role", "administrator", "--name", "test", "--life", "1min", "--key-file", key).stdout.strip()
        request = urllib.request.Request(MANAGER + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def revoked(self) -> int:
        return len(self.ask("/v1/tokens/revoked")["revoked"])

    def reservations(self) -> list[dict[str, Any]]:
        return self.ask("/v1/reservations")["reservations"]

    def start_manager(self) -> None:
        """Starts the manager with a long lease, so that only the epilog frees the groups of a job that was killed."""
        (self.work / "manager.yaml").write_text("group_lease: 10min\nallow_plain_http: true\n")
        self.spawn("manager", self.build / "tree-manager/tributary-manager", "--config", self.work / "manager.yaml", "--listen", f"{ADDRESS}:7470", "--state-dir", self.work / "manager-state")
        until(20, "the manager answers", lambda: self.run(self.tributary, "status", "--manager", MANAGER).returncode in (0, 1))

    def start_aggregator(self, name: str, host: str) -> None:
        token = self.work / "manager-state/aggregator.token"
        self.spawn(name, self.build / "aggregator/tributary-aggregator", "--name", name, "--host-id", host, "--manager", MANAGER, "--token-file", token,
                   "--listen", f"{ADDRESS}:0", "--http", "127.0.0.1:0", "--state-file", self.work / f"{name}.state", "--memory", "256MiB")
        until(20, f"{name} has registered", lambda: name in self.run(self.tributary, "aggregators", "--manager", MANAGER).stdout)

    def groups(self) -> list[dict[str, Any]]:
        shown = self.run(self.tributary, "groups", "--manager", MANAGER, "--output", "json")
        return json.loads(shown.stdout)["groups"] if shown.returncode == 0 else []

    # Jobs

    def run(self, *command: str | Path, user: int | None = None, seconds: float = 90, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, timeout=seconds, user=user, group=user,
                              extra_groups=[] if user else None, cwd="/", env={"PATH": os.environ["PATH"], "HOME": "/", "LD_LIBRARY_PATH": str(self.work / "bin"), **environment})

    def srun(self, *arguments: str | Path, user: int = USER, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run("srun", *arguments, user=user, **environment)

    def perf(self, name: str, *arguments: str) -> list[str]:
        """An allreduce as a command of each task; the ranks meet through a file of this name."""
        meet = self.work / "meet"
        meet.mkdir(exist_ok=True)
        meet.chmod(0o1777)
        return [str(self.tributary), "perf", "all_reduce", "-b", "64K", "-e", "64K", "--id-file", str(meet / name), *(arguments or ("-n", "5"))]

    def all_idle(self) -> bool:
        return not self.run("squeue", "--noheader").stdout.strip()

    def end(self) -> None:
        for name in reversed(list(self.processes)):
            self.stop(name, kill=name == "slurmctld")
