#!/usr/bin/env python3
"""The recipes in README.md and docs/ work without changes.

    recipes_test.py REPOSITORY BUILD

A recipe is a fenced block after <!-- recipe -->, or, from its first line that begins with WORD on, after
<!-- recipe from WORD -->. All recipes of a page run in one shell, in their order, like a reader's: in a folder that has
the build at build/release and the page's first C program as mean.c. For recipes that need a manager, the test starts one
with aggregators, and puts its address, token and state directory in place of those that the page names. An administrator's
token is in alice.token, if the recipes do not make it themselves.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

LIMIT_SECONDS = 240
MANAGER, TOKEN, STATE, ADMINISTRATOR = "http://manager:7470", "/etc/tributary/job.token", "/var/lib/tributary-manager", "alice.token"
BLOCK = re.compile(r"^ *<!-- recipe(?: from (\S+))? -->\n *```\w*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def recipes_of(page: str) -> list[str]:
    """Returns the lines of each recipe that the test runs."""
    found = []
    for word, block in BLOCK.findall(page):
        lines = block.splitlines()
        begin = next((i for i, line in enumerate(lines) if line.startswith(word)), len(lines)) if word else 0
        found.append("\n".join(lines[begin:]))
    return found


class Recipes(unittest.TestCase):
    root = build = Path()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "build").mkdir()
        (self.folder / "build/release").symlink_to(self.build)

    def test_recipes_are_found(self) -> None:
        page = "<!-- recipe -->\n```\na\nb\n```\n```\nc\n```\n<!-- recipe from d -->\n```sh\nx\nd 1\ny\n```\n"
        self.assertEqual(recipes_of(page), ["a\nb", "d 1\ny"])

    def start(self, name: str, program: str, arguments: list[str]) -> dict:
        ready = self.folder / f"{name}.ready"
        log = (self.folder / f"{name}.log").open("w")
        self.addCleanup(log.close)
        process = subprocess.Popen([self.build / program, *arguments, "--ready-file", ready], stdout=subprocess.DEVNULL, stderr=log)

        def stop() -> None:
            process.terminate()
            process.wait(timeout=LIMIT_SECONDS)

        self.addCleanup(stop)
        end = time.monotonic() + LIMIT_SECONDS
        while not ready.exists():
            self.assertIsNone(process.poll(), (self.folder / f"{name}.log").read_text())
            self.assertLess(time.monotonic(), end, f"{program} does not serve")
            time.sleep(0.02)  # how often to look; no result depends on it
        return json.loads(ready.read_text())

    def start_cluster(self, aggregators: int) -> tuple[str, Path]:
        """Returns the manager's address and its state directory."""
        state = self.folder / "state"
        ready = self.start("manager", "tree-manager/tributary-manager", ["--listen", "127.0.0.1:0", "--state-dir", str(state)])
        url = f"http://127.0.0.1:{ready['port']}"
        for index in range(aggregators):
            name = f"aggregator-{index}"
            self.start(name, "aggregator/tributary-aggregator",
                       ["--name", name, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--manager", url, "--workers", "1", "--memory", "256MiB",
                        "--state-file", str(self.folder / f"{name}.state"), "--token-file", str(state / "aggregator.token")])
        return url, state

    def cluster_for(self, script: str, environment: dict[str, str]) -> str:
        """Starts the cluster that a script needs, and returns the script with the cluster's names."""
        if not any(name in script for name in (MANAGER, STATE, ADMINISTRATOR)):
            return script
        url, state = self.start_cluster(max(map(int, re.findall(r"--count (\d+)", script)), default=1))
        environment |= {"TRIBUTARY_MANAGER": url}
        if f"-O {ADMINISTRATOR}" not in script:
            subprocess.run(["tributary", "token", "make", "--role", "administrator", "--name", "alice", "--life", "1h", "--key-file", state / "identity.keys",
                            "-O", self.folder / ADMINISTRATOR], env=environment, check=True)
        shutil.copy(state / "aggregator.token", self.folder)
        shutil.copy(self.root / "config/topology-demo.yaml", self.folder / "topology.yaml")
        return script.replace(MANAGER, url).replace(TOKEN, str(state / "job.token")).replace(STATE, str(state))

    def prepare_program(self, page: str, environment: dict[str, str]) -> None:
        """Installs the library where the shell finds it, and writes the program that the page shows."""
        program = re.search(r"<!-- tested: c -->\n```c\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        if program is None:
            return
        (self.folder / "mean.c").write_text(program[1])
        prefix = self.folder / "installed"
        subprocess.run(["cmake", "--install", self.build, "--component", "tributary-client", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        package = next(prefix.rglob("tributary.pc"))
        environment["PKG_CONFIG_PATH"] = str(package.parent)
        environment["LD_LIBRARY_PATH"] = str(package.parent.parent)

    def run_page(self, path: Path) -> None:
        page = path.read_text()
        script = "\n".join(recipes_of(page))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TRIBUTARY_", "NCCL_", "LD_"))}
        environment["PATH"] = f"{self.build / 'client/cli'}:{environment['PATH']}"
        self.prepare_program(page, environment)
        script = self.cluster_for(script, environment)
        ended = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True,
                               check=False, timeout=LIMIT_SECONDS)
        self.assertEqual(ended.returncode, 0, f"{path}\n{script}\n{ended.stdout}\n{ended.stderr}")

    def test_recipes_work_as_printed(self) -> None:
        pages = [self.root / "README.md", *sorted((self.root / "docs").rglob("*.md"))]
        with_recipes = [page for page in pages if "<!-- recipe" in page.read_text()]
        self.assertGreater(len(with_recipes), 2)
        for page in with_recipes:
            self.assertEqual(len(recipes_of(page.read_text())), page.read_text().count("<!-- recipe"), f"{page} has a recipe that cannot be read")
            with self.subTest(page=page.name):
                if "\nmpicc.openmpi " in page.read_text() and shutil.which("mpicc.openmpi") is None:
                    self.skipTest("Open MPI is not installed: scripts/setup --mpi")
                self.run_page(page)

    def test_recipes_that_name_a_manager_name_a_token(self) -> None:
        for page in [self.root / "README.md", *sorted((self.root / "docs").rglob("*.md"))]:
            for block in re.findall(r"^```[^\n]*\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
                if re.search(r"TRIBUTARY_MANAGER=", block):
                    self.assertIn("TRIBUTARY_TOKEN_FILE=", block, f"{page}: a job without its token runs beside the tree")


if __name__ == "__main__":
    Recipes.root, Recipes.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:]
    unittest.main(verbosity=1)
