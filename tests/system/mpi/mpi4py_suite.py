#!/usr/bin/env python3
"""mpi4py's own tests have the same outcome with and without libtributary-mpi.

    mpi4py_suite.py REPOSITORY BUILD MPI MPIRUN LIBRARY

`scripts/setup --mpi` puts mpi4py and its tests in build/mpi4py. Every call that has a form in libtributary goes by
Tributary, however small it is. TRIBUTARY_TEST_MODULES, a regular expression, chooses modules of the suite.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RANKS = {"openmpi": 3, "mpich": 2}  # MPICH's ranks use a core each while they wait
LIMIT_SECONDS = 1500
# Spawned processes and other jobs are outside of the library, and start slowly. The pool of mpi4py.util spawns, too.
LEFT_OUT = ["spawn", "dynproc", "util_pool"]
# Without ULFM in MPI, mpi4py's Iagree is MPI_Iallreduce. This test calls it and MPI_Barrier in different orders on the ranks,
# which MPI does not allow; MPI's own collectives forgive it by chance.
TESTS_LEFT_OUT = ["TestULFM*.testIAgree"]
# With MPICH only collectives and requests run. MPICH 4.0.2 fails in util_sync without the library, too, and then waits;
# the rest did not end within 25 minutes on two cores, because MPICH's ranks spin while they wait.
MODULES = {"openmpi": "", "mpich": "test_cco|test_request"}
OUTCOME = re.compile(r"^(test\w+) \(([\w.]+)\)[^()]*? \.\.\. ?(?:.*\n)*?.*?(ok|FAIL|ERROR|skipped|expected failure)\b", re.MULTILINE)


class Suite(unittest.TestCase):
    root = build = library = Path()
    mpi = mpirun = ""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRIBUTARY_", "LD_", "OMPI_", "PMI_"))}
        environment.update(MPI4PY_MPIABI=self.mpi, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PYTHONDONTWRITEBYTECODE="1",
                           TRIBUTARY_PATH="in-network", TRIBUTARY_LOCAL="off", TRIBUTARY_MPI_MIN_BYTES="0", TRIBUTARY_MPI_REPORT="1")
        if self.mpi == "mpich":
            # mpi4py's wheel names MPICH's library by its name outside of Debian.
            linked = self.folder / "libmpi.so.12"
            if not linked.exists():
                linked.symlink_to(next(Path("/usr/lib").glob("*/libmpich.so.12")))
            environment["LD_LIBRARY_PATH"] = str(self.folder)
        return environment

    def run_suite(self, name: str, preload: str, wrapper: list[str]) -> tuple[dict[str, str], str]:
        """Returns the outcome of each test on rank 0, and all output of rank 0."""
        python, suite = self.root / "build/mpi4py/venv/bin/python", self.root / "build/mpi4py/source/test/main.py"
        modules = os.environ.get("TRIBUTARY_TEST_MODULES", MODULES[self.mpi])
        options = [f"-e {word}" for word in LEFT_OUT] + [f"-x '*{test}'" for test in TESTS_LEFT_OUT] + ([f"-i '{modules}'"] if modules else [])
        rank = f"{preload} exec {python} {suite} -v {' '.join(options)} >{self.folder}/{name}.${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} 2>&1"
        command = [*wrapper, self.mpirun, *(["--oversubscribe", "--bind-to", "none"] if self.mpi == "openmpi" else [])]
        ended = subprocess.run([*command, "-np", str(RANKS[self.mpi]), "sh", "-c", rank], env=self.environment(), cwd=self.folder, capture_output=True, text=True,
                               check=False, timeout=LIMIT_SECONDS)
        output = (self.folder / f"{name}.0").read_text()
        self.assertEqual(ended.returncode, 0, f"{ended.stdout}\n{ended.stderr}\n{output}")
        return {f"{of}.{test}": outcome for test, of, outcome in OUTCOME.findall(output)}, output

    def test_the_suite_has_the_same_outcome_with_the_library(self) -> None:
        without, _ = self.run_suite("without", "", [])
        cluster = [str(self.build / "client/cli/tributary"), "run", "--ranks", "1", "--aggregators", "1", "--"]
        through, output = self.run_suite("through", f"LD_PRELOAD={self.library}", cluster)
        self.assertGreater(len(without), 10, "mpi4py's suite runs more tests")
        self.assertEqual(through, without)
        carried = {name: int(calls) for name, calls in re.findall(r"(MPI_\w+): by Tributary (\d+) calls", output)}
        print(self.mpi, f"{len(without)} tests, calls by Tributary:", carried, flush=True)
        self.assertGreater(carried.get("MPI_Allreduce", 0), 100, output[-3000:])


if __name__ == "__main__":
    Suite.root, Suite.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    Suite.mpi, Suite.mpirun, Suite.library = sys.argv[3], sys.argv[4], Path(sys.argv[5]).resolve()
    if not (Suite.root / "build/mpi4py/ready").exists():
        print(f"skipped: {Suite.root}/build/mpi4py does not exist: scripts/setup --mpi")
        sys.exit(77)
    del sys.argv[1:]
    unittest.main(verbosity=1)
