"""Aggregators are killed again and again under one training: no error, and the bits of an undisturbed training.

    kills_test.py REPOSITORY BUILD FRAMEWORK PYTHON [MPIRUN LIBRARY MPI4PY]

FRAMEWORK is torch, jax, tensorflow or mpi4py; PYTHON has it. With TRIBUTARY_NUMERICS=exact the bits of a sum do not depend
on its path. TRIBUTARY_TEST_KILLS: how often, by default 100 times.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from framework_jobs import SKIPPED, Framework
from free_ports import free_port

KILLS = int(os.environ.get("TRIBUTARY_TEST_KILLS", "100"))
RANKS = 4
LIMIT_SECONDS = 300.0
STEPS_BETWEEN = 20
ALL_RANKS = {"TRIBUTARY_NUMERICS": "exact", "TRIBUTARY_LOG": "info", "TRIBUTARY_TIMEOUT": "60", "JAX_PLATFORMS": "cpu", "TF_NUM_INTRAOP_THREADS": "1",
             "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
STEP, RESULT = re.compile(r"step (\d+)\b"), re.compile(r"\{[^{}]*\}")
IN_USE = "in-network reduction in use"


class Training:
    """The ranks of one training. A thread reads their outputs, so that no rank waits for a reader."""

    def __init__(self, test: "Kills", name: str, *arguments: str) -> None:
        self.test, self.steps, self.results = test, 0, {}
        self.log = test.folder / f"{name}.log"
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(RANKS), **ALL_RANKS}
        self.processes = []
        with self.log.open("w") as errors:
            for rank, command in enumerate(test.commands(list(arguments))):
                variables = {**os.environ, **common, "RANK": str(rank), **test.over_trees(rank), **test.variables}
                self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables))
        self.readers = [threading.Thread(target=self.read, args=(process,), daemon=True) for process in self.processes]
        for reader in self.readers:
            reader.start()
        test.addCleanup(self.stop)

    def read(self, process: subprocess.Popen) -> None:
        for line in process.stdout:
            # mpirun may write the lines of several ranks into one.
            for number in STEP.findall(line):
                self.steps = int(number)
            for text in RESULT.findall(line):
                result = json.loads(text)
                self.results[result["rank"]] = result

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()  # mpirun then ends its ranks
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for process, reader in zip(self.processes, self.readers, strict=True):
            reader.join()
            process.stdout.close()

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not condition():
            ended = any(process.poll() is not None for process in self.processes)
            if ended or time.monotonic() > end:
                self.test.fail(f"{'a rank ended before' if ended else 'this did not come true:'} {what}\n{self.log.read_text()[-5000:]}\n{self.test.daemons()}")
            time.sleep(0.02)  # how often to look; no result depends on it

    def wait_for_steps(self, what: str) -> None:
        wanted = self.steps + STEPS_BETWEEN
        self.wait_until(lambda: self.steps >= wanted, what)

    def times_on_trees(self) -> int:
        return self.log.read_text(errors="replace").count(IN_USE)

    def end(self) -> list[dict]:
        for process in self.processes:
            self.test.assertEqual(process.wait(timeout=LIMIT_SECONDS), 0, self.log.read_text()[-5000:])
        for reader in self.readers:
            reader.join()
        self.test.assertEqual(sorted(self.results), list(range(RANKS)), self.log.read_text()[-5000:])
        return [self.results[rank] for rank in range(RANKS)]


class Kills(Framework):
    framework = ""
    mpirun: list[str] = []
    variables: dict[str, str] = {}

    def commands(self, arguments: list[str]) -> list[list[str]]:
        """Returns the command of each process to start: mpirun starts the ranks itself."""
        program = [str(self.python), "-B", str(Path(__file__).with_name("train.py")), self.framework, *arguments]
        return [[*self.mpirun, *program]] if self.mpirun else [program] * RANKS

    def daemons(self) -> str:
        """Returns what the manager says about the group and its aggregators, and the ends of the daemons' logs."""
        text = ""
        for command in ("groups", "aggregators"):
            shown = subprocess.run([self.build / "client/cli/tributary", command, "-o", "yaml"], capture_output=True, text=True,
                                   env={**os.environ, **self.over_trees(0)})
            text += f"{command}: {shown.stdout}{shown.stderr}\n"
        for service in self.cluster.services.values():
            ended = service.process.poll() if service.process else None
            text += f"{service.name}, {'running' if ended is None else f'exit code {ended}'}:\n{service.log_tail(30)}\n"
        return text

    def test_a_training_ends_with_the_bits_of_an_undisturbed_one(self) -> None:
        from demo_cluster import AGGREGATORS

        self.start_cluster()
        stop, begin = self.folder / "stop", time.monotonic()
        training = Training(self, "killed", "--until", str(stop))
        for kill in range(KILLS):
            training.wait_until(lambda: training.times_on_trees() > kill, f"the ranks use trees after {kill} kills")
            training.wait_for_steps(f"steps over trees before kill {kill}")
            victim = self.cluster.services[AGGREGATORS[kill % len(AGGREGATORS)]]
            victim.kill()
            training.wait_for_steps(f"steps after kill {kill}, of {victim.name}")
            victim.start()
        training.wait_until(lambda: training.times_on_trees() > KILLS, "the ranks use trees at the end")
        stop.touch()
        killed = training.end()
        seconds = time.monotonic() - begin
        undisturbed = Training(self, "undisturbed", "--steps", str(killed[0]["steps"])).end()
        print(f"{self.framework}: {KILLS} kills in {seconds:.0f} s and {killed[0]['steps']} steps, accuracy {killed[0]['accuracy']:.4f}", flush=True)
        self.assertEqual({one["digest"] for one in killed}, {undisturbed[0]["digest"]})
        self.assertEqual({one["digest"] for one in undisturbed}, {undisturbed[0]["digest"]})
        self.assertGreater(killed[0]["accuracy"], 0.9)


def main() -> int:
    Kills.root, Kills.build, Kills.framework, Kills.python = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3], Path(sys.argv[4])
    for variable in [variable for variable in os.environ if variable.startswith("TRIBUTARY_")]:
        del os.environ[variable]
    wanted = [Kills.python]
    if Kills.framework in ("jax", "tensorflow"):
        wanted.append(Kills.python.parents[1] / "package")
    if Kills.framework == "mpi4py":
        mpirun, library, mpi4py = sys.argv[5:8]
        # An MPI of several names: mpi4py's wheel has a build for each, and this is Open MPI's.
        Kills.variables = {"PYTHONPATH": mpi4py, "MPI4PY_MPIABI": "openmpi", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                           "TRIBUTARY_MPI_MIN_BYTES": "1K"}
        Kills.mpirun = [mpirun, "--oversubscribe", "--bind-to", "none", "-np", str(RANKS), "env", f"LD_PRELOAD={library}"]
        wanted.append(Path(mpi4py))
    if missing := [str(one) for one in wanted if not one.exists()]:
        print(f"skipped: {missing[0]} does not exist: scripts/setup --python --frameworks --mpi")
        return SKIPPED
    sys.path.insert(0, str(Kills.root / "scripts"))
    found = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Kills))
    return 0 if found.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
