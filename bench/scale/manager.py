"""A real tributary-manager on loopback, with stand-ins for aggregators, which only register."""

from __future__ import annotations

import http.client
import json
import subprocess
import tempfile
import time
from pathlib import Path

from fabric import Fabric

MEMORY_BYTES = 64 << 30
SETTINGS = "aggregator_lease: 1h\ngroup_lease: 1h\nrequest_limit: 10min\nlog_level: error\n"


class Manager:
    """Use it in a `with` statement, which removes the process and its folder at its end."""

    def __init__(self, build: Path, fabric: Fabric, dead: frozenset[int] = frozenset()) -> None:
        self._build = build
        self._fabric = fabric
        self._dead = dead

    def __enter__(self) -> Manager:
        self._folder = tempfile.TemporaryDirectory(prefix="tributary-scale-")
        folder = Path(self._folder.name)
        (folder / "topology.yaml").write_text(self._fabric.topology(), encoding="utf-8")
        (folder / "manager.yaml").write_text(SETTINGS, encoding="utf-8")
        ready = folder / "ready"
        command = [
            str(self._build / "tree-manager/tributary-manager"), "--config", str(folder / "manager.yaml"),
            "--listen", "127.0.0.1:0", "--state-dir", str(folder / "state"), "--topology", str(folder / "topology.yaml"),
            "--ready-file", str(ready),
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            self._wait(ready)
            self._register()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def _wait(self, ready: Path) -> None:
        limit = time.monotonic() + 60
        while not ready.exists() or not ready.read_text(encoding="utf-8").strip():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"the manager does not serve (exit status {self._process.poll()})")
            time.sleep(0.02)
        self.port = int(json.loads(ready.read_text(encoding="utf-8"))["port"])
        state = Path(self._folder.name) / "state"
        self.job_token_file = state / "job.token"
        self._aggregator_token = (state / "aggregator.token").read_text(encoding="utf-8").strip()
        self._job_token = self.job_token_file.read_text(encoding="utf-8").strip()

    def _call(self, connection: http.client.HTTPConnection, method: str, path: str, token: str, body: object) -> dict:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

    def _register(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        for it in range(self._fabric.aggregators):
            if it in self._dead:
                continue
            address = f"10.{it >> 16}.{it >> 8 & 255}.{it & 255}"
            body = {
                "name": f"a-{it}",
                "host": self._fabric.aggregator_host(it),
                "data": f"{address}:7471",
                "http": f"{address}:7472",
                "memory_bytes": MEMORY_BYTES,
            }
            self._call(connection, "POST", "/v1/aggregators", self._aggregator_token, body)
        connection.close()

    def plan(self, hosts: list[str]) -> dict:
        """Runs `tributary plan -o json` for a group; the manager chooses the number of lanes."""
        command = [
            str(self._build / "client/cli/tributary"), "plan", *hosts, "--manager", f"http://127.0.0.1:{self.port}",
            "--token-file", str(self.job_token_file), "--time-limit", "600", "-o", "json",
        ]  # fmt: skip
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def reserve(self, job: str, hosts: list[str]) -> dict:
        """Asks for a group like rank 0 of a job, and returns the group's trees: later plans count its load."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        group = self._call(connection, "POST", "/v1/groups", self._job_token, {"job": job, "ranks": hosts, "lanes": 0})
        details = self._call(connection, "GET", f"/v1/groups/{group['group']}", self._job_token, None)
        connection.close()
        return details

    def renew(self, group: dict) -> dict:
        """Renews the lease of a group, as its rank 0 does, and returns its details with the rates that the answer tells."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        lease = self._call(connection, "PUT", f"/v1/groups/{group['group']}/lease", self._job_token, None)
        connection.close()
        return group | {"rates": lease.get("rates", group["rates"])}
