#!/usr/bin/env python3
"""Tries the OpenAPI document on a real manager: schemathesis makes requests that fit it and requests that do not.

    openapi_test.py REPOSITORY BUILD

Each kind of identity runs all operations: the document must name each answer, no answer may be a crash, the manager
must accept all requests that the document allows, and refuse all requests that it forbids. Further runs name an
aggregator and a group that exist.
"""

import json
import os
import subprocess
import sys
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

SKIPPED = 77
RUN_LIMIT_SECONDS = 600.0
ROLES = {
    "administrator": ("--role", "administrator", "--name", "root"),
    "operator": ("--role", "operator", "--name", "op"),
    "tenant": ("--tenant", "physics"),
    "reader": ("--role", "reader", "--name", "eye"),
    "aggregator": ("--role", "aggregator", "--name", "leaf-a"),
}
AGGREGATOR = {"name": "leaf-a", "host": "h", "data": "10.0.0.1:7471", "http": "10.0.0.1:7472", "memory_bytes": 1 << 40}


class Document(Daemons):
    st = Path()

    def setUp(self) -> None:
        super().setUp()
        ready = self.start("manager", "tree-manager/tributary-manager", f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\nreads_need_token: true\n"
                           "requests_per_second_max: 100000\nlog_level: error\n")
        self.url = f"http://127.0.0.1:{ready['port']}"

    def token(self, role: str) -> str:
        made = subprocess.run([self.build / "client/cli/tributary", "token", "make", *ROLES[role], "--life", "2h", "--key-file",
                               self.folder / "state/identity.keys"], capture_output=True, text=True, check=True)
        return made.stdout.split()[-1]

    def post(self, path: str, body: dict, role: str) -> dict:
        headers = {"Authorization": f"Bearer {self.token(role)}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)

    def run_all(self, token: str, more: str = "") -> None:
        settings = self.folder / "schemathesis.toml"
        # The stateful phase uses objects that it has made itself, so it runs only where no names are given.
        phases = "examples,coverage,fuzzing" + ("" if more else ",stateful")
        settings.write_text(more + (self.root / "tests/system/openapi/schemathesis.toml").read_text())
        proof = ("--header", f"Authorization: Bearer {token}") if token else ()
        ended = subprocess.run([self.st, "--config-file", settings, "run", self.url + "/v1/openapi.json", "--seed", "1", "--max-examples", "10", "--phases", phases,
                                "--generation-database", "none", "--request-timeout", str(LIMIT_SECONDS), *proof],
                               cwd=self.folder, capture_output=True, text=True, check=False, timeout=RUN_LIMIT_SECONDS, env=os.environ | {"COLUMNS": "160"})
        self.assertEqual(ended.returncode, 0, ended.stdout[-20000:] + ended.stderr[-4000:])
        self.assertIsNone(self.processes["manager"].poll(), "the manager has ended")

    def test_without_a_token(self) -> None:
        self.run_all("")

    def test_with_the_old_secrets(self) -> None:
        for name in ("job.token", "aggregator.token"):
            with self.subTest(name):
                self.run_all((self.folder / "state" / name).read_text().strip())

    def test_with_each_role(self) -> None:
        for role in ROLES:
            with self.subTest(role):
                self.run_all(self.token(role))

    def test_on_an_aggregator_and_a_group_that_exist(self) -> None:
        for role in ("administrator", "tenant", "aggregator"):
            with self.subTest(role):
                self.post("/v1/aggregators", AGGREGATOR, "aggregator")
                group = self.post("/v1/groups", {"job": "j", "ranks": ["a", "b"]}, "tenant")["group"]
                self.run_all(self.token(role), f'[parameters]\n"path.name" = "leaf-a"\n"path.id" = {group}\n"query.group" = {group}\n\n')


if __name__ == "__main__":
    Document.root, Document.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    Document.st = Path(os.environ.get("TRIBUTARY_SCHEMATHESIS", Document.root / "build/schemathesis/bin/st"))
    if not Document.st.exists():
        print(f"skipped: {Document.st} does not exist; scripts/setup --python makes it where pip reaches its packages")
        sys.exit(SKIPPED)
    del sys.argv[1:3]
    unittest.main(verbosity=1)
