#!/usr/bin/env python3
"""Planted reasons are seen, with their codes, in the log, in REST, in metrics and in the statistics of the job.

    reasons_test.py REPOSITORY BUILD
"""

import json
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it
from free_ports import free_port  # noqa: E402

RANKS = 2
MANAGER = "listen: 127.0.0.1:0\ngroup_lease: 3s\nwindow: 32\nsegment_bytes: 64KiB\nretry_after: 1s\n"


class Reasons(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.pages: dict[str, str] = {}  # URLs of metrics, by the name of the daemon
        ready = self.start("manager", "tree-manager/tributary-manager", MANAGER + f"state_directory: {self.folder}/state\n")
        self.url = f"http://127.0.0.1:{ready['port']}"
        self.pages["manager"] = self.url + "/metrics"
        self.make_token("root", "--role", "administrator", "--name", "root")
        self.make_token("chemistry", "--tenant", "chemistry")
        for folder in ("status", "statistics"):
            (self.folder / folder).mkdir(mode=0o700)

    def make_token(self, name: str, *who: str) -> None:
        ended = self.tributary("token", "make", *who, "--life", "1h", "--key-file", f"{self.folder}/state/identity.keys", "-O", f"{self.folder}/{name}.token")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def start_aggregator(self, name: str) -> None:
        port = free_port()
        self.start(name, "aggregator/tributary-aggregator", f"name: {name}\nmanager: {self.url}\ntoken_file: {self.folder}/state/aggregator.token\nhost_id: {name}\n"
                   f"listen: 127.0.0.1:0\nhttp_listen: 127.0.0.1:{port}\nworkers: 1\nmemory: 1GiB\nstate_file: {self.folder}/{name}.key\n")
        self.pages[name] = f"http://127.0.0.1:{port}/metrics"
        self.wait_until(lambda: name in [a["name"] for a in self.ask("GET", "/v1/aggregators")["aggregators"]], f"{name} does not register")

    def start_job(self, token: str = "") -> None:
        """Starts two ranks that reduce until end_job()."""
        port = free_port()
        self.ranks = []
        for rank in range(RANKS):
            more = {"TRIBUTARY_TOKEN_FILE": str(self.folder / f"{token}.token")} if token else {}
            environment = self.environment(
                RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TRIBUTARY_HOST_ID=f"h{rank}",
                TRIBUTARY_MANAGER=self.url, TRIBUTARY_TUNING="off", TRIBUTARY_LOCAL="off", TRIBUTARY_TIMEOUT="60", TRIBUTARY_LOG="info",
                TRIBUTARY_STATUS_DIR=str(self.folder / "status"), TRIBUTARY_STATISTICS=str(self.folder / "statistics"), **more)
            log = (self.folder / f"rank-{rank}.log").open("w")
            self.addCleanup(log.close)
            process = subprocess.Popen([self.build / "tests/system/chaos/tributary_chaos_rank", "--stop-file", self.folder / "stop", "--bytes-max", "65536", "--world-only"],
                                       env=environment, stdout=subprocess.DEVNULL, stderr=log)
            self.ranks.append(process)
            self.addCleanup(self.kill, process)

    def kill(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait(timeout=LIMIT_SECONDS)

    def end_job(self) -> dict:
        """Ends the ranks. Returns the statistics of their largest communicator."""
        (self.folder / "stop").touch()
        for rank in self.ranks:
            self.assertEqual(rank.wait(timeout=LIMIT_SECONDS), 0, self.log())
        written = [json.loads(file.read_text()) for file in (self.folder / "statistics").iterdir()]
        return max(written, key=lambda one: one["calls"])

    def log(self) -> str:
        return (self.folder / "rank-0.log").read_text()

    def wait_for_line(self, *parts: str) -> None:
        self.wait_until(lambda: any(all(part in line for part in parts) for line in self.log().splitlines()), lambda: f"no line has {parts}: {self.log()}")

    def ask(self, method: str, path: str, body: dict | None = None, who: str = "root") -> dict:
        head = {"Authorization": f"Bearer {(self.folder / f'{who}.token').read_text().strip()}"} if who else {}
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(), head, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def counted(self, daemon: str, code: str) -> int:
        """Returns how often a daemon, or `rank` 0, has counted the code."""
        if daemon == "rank":
            page = self.tributary("metrics", "--dir", str(self.folder / "status")).stdout
        else:
            with urllib.request.urlopen(self.pages[daemon], timeout=LIMIT_SECONDS) as answer:
                page = answer.read().decode()
        kind = daemon if daemon in ("rank", "manager") else "aggregator"
        counts = [line for line in page.splitlines() if line.startswith(f"tributary_{kind}_reasons_total{{") and f'code="{code}"' in line]
        if kind == "rank":
            counts = [line for line in counts if 'rank="0"' in line]
        self.assertLessEqual(len(counts), 1, counts)
        return sum(int(line.split()[-1]) for line in counts)

    def wait_for_count(self, daemon: str, code: str) -> None:
        self.wait_until(lambda: self.counted(daemon, code) >= 1, lambda: f"{daemon} has not counted {code}; {self.log()}")

    def test_a_job_without_a_token(self) -> None:
        self.start_aggregator("a")
        self.start_job()
        self.wait_for_line("in-network reduction not in use: ", "no token was given: ", " [no-token], transport ")
        self.wait_for_count("rank", "no-token")
        self.wait_for_count("manager", "no-token")
        self.assertEqual(self.counted("manager", "wrong-token"), 0)
        error = self.ask("POST", "/v1/groups", {"job": "j", "ranks": ["h0", "h1"]}, who="")["error"]
        self.assertEqual((error["code"], error["reason_code"]), ("unauthorized", "no-token"))
        self.assertNotIn("[", error["message"], "the code is a member of its own")
        statistics = self.end_job()
        self.assertEqual(statistics["code"], "no-token", statistics)
        self.assertIn("no token was given", statistics["reason"])
        self.assertNotIn("[no-token]", statistics["reason"])
        self.assertGreaterEqual(statistics["reasons"]["no-token"], 1)
        self.assertIn("no-token (denial): ", self.tributary("explain", statistics["code"]).stdout)

    def test_a_wrong_token_and_a_role_that_may_not(self) -> None:
        (self.folder / "wrong.token").write_text("not-the-token\n")
        self.assertEqual(self.ask("POST", "/v1/groups", {"job": "j", "ranks": ["h0", "h1"]}, who="wrong")["error"]["reason_code"], "wrong-token")
        self.assertEqual(self.ask("PUT", "/v1/tenants/x", {}, who="chemistry")["error"]["reason_code"], "not-allowed")
        self.assertEqual((self.counted("manager", "wrong-token"), self.counted("manager", "not-allowed")), (1, 1))

    def test_a_tenant_at_its_quota(self) -> None:
        self.start_aggregator("a")
        self.ask("PUT", "/v1/tenants/chemistry", {"groups": 1})
        first = self.ask("POST", "/v1/groups", {"job": "first", "ranks": ["h0", "h1"], "lanes": 1}, who="chemistry")
        self.assertNotIn("code", first, first)
        self.start_job("chemistry")
        self.wait_for_line("in-network reduction not in use: ", "has a quota of 1 groups", " [quota-groups], transport ")
        self.wait_for_count("rank", "quota-groups")
        self.wait_for_count("manager", "quota-groups")
        self.assertIn("quota-groups", [group["code"] for group in self.ask("GET", "/v1/groups")["groups"]])
        self.assertIn(" [quota-groups]", self.tributary("groups", "--manager", self.url, "--token-file", f"{self.folder}/root.token").stdout)

    def test_a_killed_aggregator(self) -> None:
        self.start_aggregator("a")
        self.start_job("chemistry")
        self.wait_for_line("in-network reduction in use: ")
        self.assertEqual(self.counted("rank", "aggregator-lost"), 0)
        self.processes["a"].send_signal(signal.SIGKILL)
        self.wait_for_line("in-network reduction not in use: aggregator a ", " [aggregator-lost], transport ")
        self.wait_for_count("rank", "aggregator-lost")
        self.wait_for_count("manager", "no-tree")
        self.assertGreaterEqual(self.end_job()["reasons"]["aggregator-lost"], 1)

    def test_a_killed_rank(self) -> None:
        self.start_aggregator("a")
        self.start_job("chemistry")
        self.wait_for_line("in-network reduction in use: ")
        self.assertEqual(self.counted("a", "rank-gone"), 0)
        self.ranks[1].kill()
        self.wait_for_count("a", "rank-gone")

    def test_a_drained_aggregator(self) -> None:
        self.start_aggregator("a")
        self.start_job("chemistry")
        self.wait_for_line("in-network reduction in use: ")
        self.start_aggregator("b")
        self.ask("POST", "/v1/aggregators/a/drain")
        self.wait_for_line("moves to other trees: aggregator a is draining [draining]")
        self.wait_for_count("rank", "draining")
        self.wait_for_count("manager", "draining")
        self.end_job()


if __name__ == "__main__":
    Daemons.root, Daemons.build = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1], verbosity=2)
