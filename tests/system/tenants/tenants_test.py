#!/usr/bin/env python3
"""Classes, reservations and demanded security between real processes.

    tenants_test.py REPOSITORY BUILD

Jobs of two tenants reduce without a pause on an aggregator that has room for one of them. Each rank checks each sum.
"""

import json
import signal
import subprocess
import sys
import threading
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it
from free_ports import free_port  # noqa: E402

RANKS = 2
RIGHT = "# Out of bounds values : 0 OK"
MANAGER = "listen: 127.0.0.1:0\ngroup_lease: 3s\nwindow: 32\nsegment_bytes: 64KiB\nretry_after: 1s\n"


class Job:
    """Two ranks that reduce until end(). The reports of each rank say which path the last operations took."""

    def __init__(self, test: "Tenants", tenant: str, **more: str) -> None:
        self.test, self.tenant, self.stop = test, tenant, test.folder / f"{tenant}.stop"
        self.paths, self.rounds, self.returns, self.wrong = [""] * RANKS, [0] * RANKS, [0] * RANKS, []
        self.ranks, self.readers = [], []
        port = free_port()
        for rank in range(RANKS):
            environment = test.environment(
                RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TRIBUTARY_HOST_ID=f"h{rank}",
                TRIBUTARY_MANAGER=test.url, TRIBUTARY_TOKEN_FILE=str(test.folder / f"{tenant}.token"), TRIBUTARY_TUNING="off", TRIBUTARY_LOCAL="off",
                TRIBUTARY_TIMEOUT="60", **more)
            process = subprocess.Popen([test.build / "tests/system/chaos/tributary_chaos_rank", "--stop-file", self.stop, "--bytes-max", "65536", "--world-only"],
                                       env=environment, stdout=subprocess.PIPE, stderr=(test.folder / f"{tenant}-{rank}.log").open("w"), text=True)
            self.ranks.append(process)
            test.addCleanup(self.kill, process)
            self.readers.append(threading.Thread(target=self.read, args=(rank, process)))
            self.readers[-1].start()

    def kill(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait(timeout=LIMIT_SECONDS)

    def read(self, rank: int, process: subprocess.Popen) -> None:
        for line in process.stdout:
            words = line.split()
            if words[0] == "round":  # NUMBER END GAP NAME PATH EPOCH FAILOVERS RETURNS PAUSE DIGEST
                self.rounds[rank], self.paths[rank], self.returns[rank] = int(words[1]), words[5], int(words[8])
            elif words[0] in ("error", "wrong"):
                self.wrong.append(line)

    def logs(self) -> str:
        return "".join((self.test.folder / f"{self.tenant}-{rank}.log").read_text()[-2000:] for rank in range(RANKS))

    def wait_for(self, path: str) -> None:
        """Waits until all ranks report this path, and five rounds more."""
        self.test.wait_until(lambda: self.paths == [path] * RANKS or self.wrong, lambda: f"{self.tenant} is not {path}: {self.paths} {self.logs()}")
        after = min(self.rounds) + 5
        self.test.wait_until(lambda: min(self.rounds) >= after or self.wrong, lambda: f"{self.tenant} stands still {self.logs()}")
        self.test.assertEqual(self.wrong, [], self.logs())
        self.test.assertEqual(self.paths, [path] * RANKS)

    def end(self) -> None:
        self.stop.touch()
        for rank, reader in zip(self.ranks, self.readers, strict=True):
            self.test.assertEqual(rank.wait(timeout=LIMIT_SECONDS), 0, self.logs())
            reader.join()
        self.test.assertEqual(self.wrong, [])


class Tenants(Daemons):
    def start_manager(self, more: str = "") -> None:
        self.url = f"http://127.0.0.1:{self.start('manager', 'tree-manager/tributary-manager', MANAGER + f'state_directory: {self.folder}/state{chr(10)}' + more)['port']}"
        for tenant in ("low", "boss"):
            self.make_token(tenant, "--tenant", tenant)
        self.make_token("root", "--role", "administrator", "--name", "root")

    def make_token(self, name: str, *who: str) -> None:
        ended = self.tributary("token", "make", *who, "--life", "1h", "--key-file", f"{self.folder}/state/identity.keys", "-O", f"{self.folder}/{name}.token")
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def start_aggregator(self, name: str, more: str) -> None:
        self.start(name, "aggregator/tributary-aggregator", f"name: {name}\nmanager: {self.url}\ntoken_file: {self.folder}/state/aggregator.token\nhost_id: {name}\n"
                   f"listen: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nworkers: 1\nstate_file: {self.folder}/{name}.key\n{more}")
        self.wait_until(lambda: name in [a["name"] for a in self.ask("GET", "/v1/aggregators")["aggregators"]], f"{name} does not register")

    def ask(self, method: str, path: str, body: dict | None = None, who: str = "root") -> dict:
        token = (self.folder / f"{who}.token").read_text().strip()
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(), {"Authorization": f"Bearer {token}"}, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)

    def counted(self, name: str) -> int:
        """Returns a metric of the manager; 0 if it is not there."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=LIMIT_SECONDS) as page:
            lines = page.read().decode().splitlines()
        return sum(int(line.split()[-1]) for line in lines if line.startswith(f"tributary_manager_{name} "))

    def code_of(self, tenant: str) -> str:
        return next(group["code"] for group in self.ask("GET", "/v1/groups")["groups"] if group["owner"] == tenant)

    def start_with_room_for_one(self) -> None:
        """Starts an aggregator that has memory for the trees of one of these jobs."""
        self.start_manager()
        self.start_aggregator("large", "memory: 1GiB\n")
        group = self.ask("POST", "/v1/groups", {"job": "measured", "ranks": ["h0", "h1"], "lanes": 1}, "low")
        needed = self.ask("GET", "/v1/aggregators/large")["memory_reserved_bytes"]
        self.assertGreater(needed, 0, group)
        self.ask("DELETE", f"/v1/groups/{group['group']}", None, "low")
        self.processes["large"].terminate()
        self.wait_until(lambda: self.ask("GET", "/v1/aggregators")["aggregators"] == [], "the aggregator does not leave")
        self.start_aggregator("small", f"memory: {needed * 3 // 2}B\n")

    def test_a_job_of_a_lower_class_goes_on_without_an_error_and_comes_back(self) -> None:
        self.start_with_room_for_one()
        self.ask("PUT", "/v1/tenants/boss", {"priority_max": "high"})
        low = Job(self, "low")
        low.wait_for("in-network")
        returns = max(low.returns)
        boss = Job(self, "boss", TRIBUTARY_PRIORITY="high")
        boss.wait_for("in-network")
        low.wait_for("fallback")
        self.wait_until(lambda: self.code_of("low") == "preempted", "the code of the displaced group")
        boss.wait_for("in-network")
        boss.end()
        low.wait_for("in-network")
        low.end()
        self.assertGreater(min(low.returns), returns)
        self.assertEqual(self.counted("displaced_total"), 1)
        self.assertGreaterEqual(self.counted('denied_total{code="waiting"}'), 1)
        self.assertGreaterEqual(self.counted('denied_total{code="preempted"}'), 1)
        for other in ("no-tree", "reserved"):
            self.assertEqual(self.counted(f'denied_total{{code="{other}"}}'), 0, other)

    def test_an_exclusive_reservation_sends_others_away_until_it_ends(self) -> None:
        self.start_with_room_for_one()
        low = Job(self, "low")
        low.wait_for("in-network")
        self.ask("POST", "/v1/reservations", {"name": "r", "tenant": "boss", "aggregators": ["small"], "end": 1 << 33, "exclusive": True})
        low.wait_for("fallback")
        self.wait_until(lambda: self.code_of("low") == "reserved", "the code of the group that was sent away")
        boss = Job(self, "boss")
        boss.wait_for("in-network")
        self.ask("DELETE", "/v1/reservations/r")
        boss.end()
        low.wait_for("in-network")
        low.end()
        self.assertGreaterEqual(self.counted('denied_total{code="reserved"}'), 1)
        self.assertEqual(self.counted('denied_total{code="preempted"}'), 0)

    def command(self, *arguments: str, who: str = "root", code: int = 0) -> str:
        ended = self.tributary(*arguments, "--manager", self.url, "--token-file", f"{self.folder}/{who}.token")
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout if code == 0 else ended.stderr

    def test_the_commands_make_list_and_end_rules(self) -> None:
        self.start_manager()
        for name in ("leaf", "spine"):
            self.start_aggregator(name, "memory: 64MiB\n")
        said = self.command("tenants", "set", "low", "--groups", "3", "--memory", "8GiB", "--rate", "8Gbit/s", "--weight", "4", "--security", "encrypt")
        self.assertEqual(said, "the entry of tenant low counts for the next trees\n")
        listed = json.loads(self.command("tenants", "-o", "json"))["tenants"]
        self.assertEqual(listed, [{"name": "low", "priority_max": "normal", "weight": 4, "security": "encrypt",
                                   "quota": {"groups": 3, "memory_bytes": 8 << 30, "bytes_per_second": 10**9},
                                   "use": {"groups": 0, "lanes": 0, "memory_bytes": 0, "bytes_per_second": 0}}])
        self.assertRegex(self.command("tenants", "-o", "wide"), r"low +0/3 +0/- +0 B/8 GiB +normal +0 bit/s/8 Gbit/s +4 +encrypt")
        self.assertIn('name: "low"', self.command("tenants", "-o", "yaml"))
        self.assertIn("administrator", self.command("tenants", "set", "boss", "--groups", "3", who="low", code=1))
        self.command("tenants", "remove", "low")
        self.assertEqual(json.loads(self.command("tenants", "-o", "json")), {"tenants": []})

        said = self.command("reserve", "run-17", "--tenant", "low", "--count", "1", "--begin", "2099-12-01T08:00", "--for", "24h")
        self.assertRegex(said, r"reservation run-17 of (leaf|spine), from 2099-12-01 08:00:00 UTC to 2099-12-02 08:00:00 UTC\n")
        self.command("reserve", "now", "--tenant", "boss", "--job", "j", "--aggregators", "leaf,spine", "--for", "1h", "--exclusive")
        shown = self.command("reservations", "-o", "wide")
        self.assertRegex(shown, r"run-17 +waits +low +any +2099-12-01 08:00:00 UTC +2099-12-02 08:00:00 UTC +1 +no +(leaf|spine)")
        self.assertRegex(shown, r"now +runs +boss +j .* 2 +yes +leaf,spine")
        self.assertIn("belongs to reservation 'now'", self.command("reserve", "other", "--tenant", "low", "--aggregators", "leaf", "--for", "1h", code=1))
        self.assertEqual(self.command("reservations", "end", "now"), "reservation now has ended\n")
        self.assertEqual([it["name"] for it in json.loads(self.command("reservations", "-o", "json"))["reservations"]], ["run-17"])

    def test_a_new_signing_key_is_used_without_a_restart(self) -> None:
        self.start_manager(f"audit_file: {self.folder}/audit.log\naggregator_lease: 3s\n")
        self.start_aggregator("leaf", "memory: 1GiB\n")
        running = Job(self, "low")
        running.wait_for("in-network")
        before = self.ask("GET", "/v1/public-key")["public_key"]
        (self.folder / "state/signing.key").rename(self.folder / "old.key")
        self.processes["manager"].send_signal(signal.SIGHUP)
        self.wait_until(lambda: self.ask("GET", "/v1/public-key")["public_key"] != before, "the manager keeps the old key")
        returns = list(running.returns)
        later = Job(self, "boss")
        later.wait_for("in-network")
        running.wait_for("in-network")
        later.end()
        running.end()
        self.assertEqual(running.returns, returns, "the running job has kept its trees")
        self.assertIn("has another key than before", (self.folder / "leaf.log").read_text())
        line = next(json.loads(line) for line in (self.folder / "audit.log").read_text().splitlines() if "signing.key" in line)
        self.assertEqual((line["method"], line["path"], line["outcome"]), ("SIGHUP", "signing.key", "done"))
        self.assertIn(self.ask("GET", "/v1/public-key")["public_key"], line["why"])

    def perf(self, tenant: str, **more: str) -> tuple[int, str]:
        """Measures an AllReduce in two ranks. Returns the number of ranks that failed, and what all of them printed."""
        port = str(free_port())
        processes = []
        for rank in range(RANKS):
            environment = self.environment(RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                           TRIBUTARY_MANAGER=self.url, TRIBUTARY_TOKEN_FILE=str(self.folder / f"{tenant}.token"), TRIBUTARY_LOCAL="off",
                                           TRIBUTARY_TIMEOUT="10", **more)
            processes.append(subprocess.Popen([self.build / "client/cli/tributary", "perf", "all_reduce", "-b", "1024", "-e", "1024", "-n", "3", "-w", "1", "-c", "1"],
                                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        printed = [process.communicate(timeout=2 * LIMIT_SECONDS)[0] for process in processes]
        return sum(process.returncode != 0 for process in processes), "\n".join(printed)

    def test_a_job_with_less_security_than_the_manager_demands_runs_without_trees(self) -> None:
        self.start_manager("security: authenticate\n")
        self.ask("PUT", "/v1/tenants/boss", {"security": "encrypt"})
        self.start_aggregator("leaf", "")
        remedy = "set TRIBUTARY_SECURITY={} on every rank"
        for tenant, has, wants in (("low", "off", "authenticate"), ("boss", "authenticate", "encrypt")):
            failed, printed = self.perf(tenant, TRIBUTARY_SECURITY=has)
            self.assertEqual((failed, RIGHT in printed), (0, True), printed)
            failed, printed = self.perf(tenant, TRIBUTARY_SECURITY=has, TRIBUTARY_PATH="in-network")
            self.assertEqual(failed, RANKS, printed)
            self.assertIn(remedy.format(wants), printed)
            failed, printed = self.perf(tenant, TRIBUTARY_SECURITY=wants, TRIBUTARY_PATH="in-network")
            self.assertEqual((failed, RIGHT in printed), (0, True), printed)
        self.assertGreaterEqual(self.counted('denied_total{code="security"}'), 4)


if __name__ == "__main__":
    Tenants.root, Tenants.build = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1])
