"""Checks the programs that several ctest tests share (tributary_add_test() with PROGRAM): every test of such a program
belongs to one of the ctest tests, and each ctest test has tests. Programs that are not built are left out.

    python3 shared_programs_test.py REPOSITORY BUILD
"""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path


def commands_of(repository: Path, build: Path) -> list[list[str]]:
    path = str(repository / "scripts/lib-test-plan")
    loader = importlib.machinery.SourceFileLoader("plan", path)
    plan = importlib.util.module_from_spec(importlib.util.spec_from_loader("plan", loader))
    loader.exec_module(plan)
    return list(plan.commands_of(build).values())


def listed(command: list[str]) -> set[str]:
    done = subprocess.run([*command, "--gtest_list_tests"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ends with {done.returncode}: {done.stderr}")
    names, suite = set(), ""
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            names.add(suite + line.split("#")[0].strip())
        else:
            suite = line.split("#")[0].strip()
    return names


def main() -> int:
    parts: dict[str, list[list[str]]] = {}
    for command in commands_of(Path(sys.argv[1]), Path(sys.argv[2])):
        if "--tests-of" in command and Path(command[0]).exists():
            parts.setdefault(command[0], []).append(command)
    bad = 0
    for program, commands in sorted(parts.items()):
        whole = listed([program])
        missing = whole - set().union(*(listed(command) for command in commands))
        print(f"{program}: {len(whole)} tests in {len(commands)} parts")
        for name in sorted(missing):
            print(f"  {name} runs in no part: name its source in SOURCES of a tributary_add_test()")
        bad += len(missing)
    return 1 if bad else 0


sys.exit(main())
