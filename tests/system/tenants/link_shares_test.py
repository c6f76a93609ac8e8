#!/usr/bin/env python3
"""Shares of a narrow link between real processes: an aggregator behind a link of 200 Mbit/s, and jobs of two tenants.

    link_shares_test.py REPOSITORY BUILD [TEST...]

The ranks and the manager run in one network, the aggregator in another. The switch between them is a bridge in a third
network, whose ports carry 200 Mbit/s in each direction; so the narrow place is not the aggregator's own interface.
Needs root. With LINK_SHARES=off the aggregator has no shares of the link, for a comparison; the tests then fail. With
LINK_WIDE=1 nothing is narrow, for a measurement of what the classes cost a lone tenant. TRANSPORT=udp makes all tests
use UDP; without it, only those do that say so.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it
from free_ports import free_port  # noqa: E402

SKIPPED = 77
RANKS_AT, AGGREGATOR_AT = "10.77.0.1", "10.77.0.2"
WIDE = "LINK_WIDE" in os.environ
RATE = 100_000_000_000 if WIDE else 200_000_000  # bits per second
MTU = 9000
BURST_BYTES = 2 * (MTU + 14)
QUEUE_BYTES = 256 * 1024
SETTLE_SECONDS, MEASURE_SECONDS = 3.0, 6.0
SEGMENT_BYTES = 32 * 1024
OPERATION = os.environ.get("OPERATION", "8M")  # long, so that the pauses between operations are a small part
SHARES = os.environ.get("LINK_SHARES", "kernel")
TRANSPORT = os.environ.get("TRANSPORT", "tcp")
DELAY_TARGET_US = int(os.environ.get("DELAY_TARGET_US", "10000"))  # over UDP; with the default senders leave a link as slow as this one idle


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


def new_network(test: unittest.TestCase) -> tuple[tuple[str, ...], int]:
    """Makes a network that ends with the test. Returns the command that runs a program there, and the number of a process in it."""
    holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs none /sys && echo there && exec sleep 600"], stdout=subprocess.PIPE, text=True)
    test.addCleanup(holder.wait, LIMIT_SECONDS)
    test.addCleanup(holder.kill)
    test.assertEqual(holder.stdout.readline(), "there\n")
    test.addCleanup(holder.stdout.close)
    return ("nsenter", f"--net=/proc/{holder.pid}/ns/net", f"--mount=/proc/{holder.pid}/ns/mnt"), holder.pid


def shape(*enter: str, device: str) -> None:
    limits = ("rate", f"{RATE}bit", "burst", str(BURST_BYTES), "cburst", str(BURST_BYTES), "quantum", str(BURST_BYTES // 2))
    run(*enter, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "1")
    run(*enter, "tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb", *limits)
    run(*enter, "tc", "qdisc", "add", "dev", device, "parent", "1:1", "handle", "10:", "bfifo", "limit", str(QUEUE_BYTES))


class Job:
    """Ranks of one tenant that reduce without a pause until the test ends, each over one connection to the aggregator."""

    def __init__(self, test: "LinkShares", tenant: str, ranks: int) -> None:
        self.test, self.tenant, self.ranks = test, tenant, ranks
        port = free_port()
        self.processes = []
        for rank in range(ranks):
            environment = test.environment(
                RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), MASTER_ADDR=RANKS_AT, MASTER_PORT=str(port), TRIBUTARY_HOST_ID=f"h{rank}",
                TRIBUTARY_MANAGER=test.url, TRIBUTARY_TOKEN_FILE=str(test.folder / f"{tenant}.token"), TRIBUTARY_PATH="in-network", TRIBUTARY_LOCAL="off",
                TRIBUTARY_LANES="1", TRIBUTARY_TIMEOUT="60", TRIBUTARY_TRANSPORT=test.transport, TRIBUTARY_UDP_DELAY_TARGET=str(DELAY_TARGET_US))
            command = [test.build / "client/cli/tributary", "perf", "all_reduce", "-b", OPERATION, "-e", OPERATION, "-n", "1000000", "-w", "1", "-c", "0"]
            log = (test.folder / f"{tenant}-{rank}.log").open("w")
            test.addCleanup(log.close)
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            test.addCleanup(self.kill, self.processes[-1])

    def kill(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait(timeout=LIMIT_SECONDS)

    def signal(self, number: int) -> None:
        for process in self.processes:
            process.send_signal(number)

    def logs(self) -> str:
        return "".join((self.test.folder / f"{self.tenant}-{rank}.log").read_text()[-2000:] for rank in range(self.ranks))


class LinkShares(Daemons):
    transport = TRANSPORT

    def setUp(self) -> None:
        super().setUp()
        switch, switch_number = new_network(self)
        self.enter, number = new_network(self)
        run("ip", "link", "add", "near", "type", "veth", "peer", "name", "left", "netns", str(switch_number))
        self.addCleanup(subprocess.run, ["ip", "link", "del", "near"], check=False, capture_output=True)
        run(*switch, "ip", "link", "add", "right", "type", "veth", "peer", "name", "far", "netns", str(number))
        run(*switch, "ip", "link", "add", "bridge", "type", "bridge")
        for enter, device in (((), "near"), (switch, "left"), (switch, "right"), (self.enter, "far")):
            run(*enter, "ip", "link", "set", device, "mtu", str(MTU), *(() if WIDE else ("gso_max_size", str(BURST_BYTES))))
        for device in ("left", "right"):
            run(*switch, "ip", "link", "set", device, "master", "bridge", "up")
            if not WIDE:
                shape(*switch, device=device)
        run(*switch, "ip", "link", "set", "bridge", "up")
        for enter, device, address in (((), "near", RANKS_AT), (self.enter, "far", AGGREGATOR_AT)):
            run(*enter, "ip", "address", "add", f"{address}/24", "dev", device)
            run(*enter, "ip", "link", "set", device, "up")
            run(*enter, "ip", "link", "set", "lo", "up")

    def start_all(self, weights: dict[str, int], shares: str = SHARES) -> None:
        manager = self.start("manager", "tree-manager/tributary-manager", f"listen: {RANKS_AT}:0\nallow_plain_http: true\nwindow: 16\nsegment_bytes: {SEGMENT_BYTES}B\n"
                             f"state_directory: {self.folder}/state\n")
        self.url = f"http://{RANKS_AT}:{manager['port']}"
        for name, who in (("root", ("--role", "administrator", "--name", "root")), *((tenant, ("--tenant", tenant)) for tenant in weights)):
            ended = self.tributary("token", "make", *who, "--life", "1h", "--key-file", f"{self.folder}/state/identity.keys", "-O", f"{self.folder}/{name}.token")
            self.assertEqual(ended.returncode, 0, ended.stderr)
        for tenant, weight in weights.items():
            self.ask(self.url + f"/v1/tenants/{tenant}", "PUT", {"weight": weight})
        self.start_aggregator(shares)

    def start_aggregator(self, shares: str) -> None:
        ready = self.start("aggregator", "aggregator/tributary-aggregator", f"name: narrow\nmanager: {self.url}\ntoken_file: {self.folder}/state/aggregator.token\n"
                           f"host_id: narrow\ntransport: {self.transport}\npacket_delay_target: {DELAY_TARGET_US}us\nlisten: {AGGREGATOR_AT}:0\nhttp_listen: {AGGREGATOR_AT}:0\nworkers: 2\nstate_file: {self.folder}/narrow.key\n"
                           f"line_rate: {RATE}bit/s\nlink_shares: {shares}\n", self.enter)
        self.pages = f"http://{AGGREGATOR_AT}:{ready['http']['port']}"
        self.wait_until(lambda: self.ask(self.url + "/v1/aggregators")["aggregators"], "the aggregator does not register")

    def ask(self, url: str, method: str = "GET", body: dict | None = None) -> dict:
        token = (self.folder / "root.token").read_text().strip()
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), {"Authorization": f"Bearer {token}"}, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.loads(answer.read() or b"{}")

    def moved(self) -> dict[str, float]:
        """Returns the bytes that the aggregator has got from each tenant's ranks."""
        bytes_of: dict[str, float] = {}
        for lane in self.ask(self.pages + "/lanes")["lanes"]:
            bytes_of[lane["tenant"]] = bytes_of.get(lane["tenant"], 0) + lane["segments_completed"] * SEGMENT_BYTES * lane["children"]
        return bytes_of

    def wait_until_all_move(self, *jobs: Job) -> None:
        self.wait_until(lambda: all(self.moved().get(job.tenant, 0) > 8 << 20 for job in jobs), lambda: f"a job stands still: {self.moved()} {jobs[-1].logs()}")

    def carried(self) -> dict[str, int]:
        """Returns the bytes that the aggregator's interface has carried: up from the ranks, and down to them."""
        return {way: int(subprocess.run([*self.enter, "cat", f"/sys/class/net/far/statistics/{name}_bytes"], check=True, capture_output=True, text=True).stdout)
                for way, name in (("up", "rx"), ("down", "tx"))}

    def parts(self) -> dict[str, float]:
        """Returns the part of the link that each tenant gets in the next seconds."""
        carried, before, begun = self.carried(), self.moved(), time.monotonic()
        time.sleep(MEASURE_SECONDS)
        after, seconds = self.moved(), time.monotonic() - begun
        link = {way: round((number - carried[way]) * 8 / seconds / RATE, 3) for way, number in self.carried().items()}
        parts = {tenant: (after[tenant] - before[tenant]) * 8 / seconds / RATE for tenant in after}
        print(self.id().rsplit(".", 1)[-1], {tenant: round(part, 3) for tenant, part in parts.items()}, link, flush=True)
        return parts

    def two_floods(self, ranks: tuple[int, int], weights: tuple[int, int]) -> dict[str, float]:
        self.start_all({"first": weights[0], "second": weights[1]})
        jobs = [Job(self, "first", ranks[0]), Job(self, "second", ranks[1])]
        self.wait_until_all_move(*jobs)
        time.sleep(SETTLE_SECONDS)
        return self.parts()

    def test_tenants_get_the_same_whatever_the_number_of_their_connections(self) -> None:
        parts = self.two_floods((16, 4), (1, 1))
        self.assertGreater(sum(parts.values()), 0.85, "the link is used")
        for tenant, part in parts.items():
            self.assertAlmostEqual(part / sum(parts.values()), 0.5, delta=0.075, msg=f"{tenant} of {parts}")

    def test_tenants_get_bytes_by_their_weights(self) -> None:
        parts = self.two_floods((4, 4), (4, 1))
        self.assertGreater(sum(parts.values()), 0.85, "the link is used")
        self.assertAlmostEqual(parts["first"] / parts["second"], 4, delta=0.8, msg=parts)

    def test_over_udp_a_tenant_that_floods_gets_no_more_than_its_share(self) -> None:
        self.transport = "udp"
        parts = self.two_floods((16, 4), (1, 1))
        self.assertGreater(sum(parts.values()), 0.6, "the link is used")
        for tenant, part in parts.items():
            self.assertAlmostEqual(part / sum(parts.values()), 0.5, delta=0.05, msg=f"{tenant} of {parts}")

    def test_over_udp_tenants_get_bytes_by_their_weights(self) -> None:
        self.transport = "udp"
        parts = self.two_floods((4, 4), (4, 1))
        self.assertGreater(sum(parts.values()), 0.6, "the link is used")
        self.assertAlmostEqual(parts["first"] / parts["second"], 3.7, delta=1.3, msg=parts)

    def test_a_lone_tenant_has_the_whole_link(self) -> None:
        alone = {}
        self.start_all({"alone": 1}, "off")
        for shares in ("off", "kernel"):
            if shares == "kernel":
                self.processes["aggregator"].terminate()
                self.processes["aggregator"].wait(timeout=LIMIT_SECONDS)
                (self.folder / "aggregator.ready").unlink()
                self.start_aggregator(shares)
            job = Job(self, "alone", 4)
            self.wait_until_all_move(job)
            time.sleep(SETTLE_SECONDS)
            alone[shares] = self.parts()["alone"]
            for process in job.processes:
                job.kill(process)
        self.assertGreater(alone["kernel"], 0.95 * alone["off"], alone)

    def test_a_tenant_that_pulses_leaves_the_link_busy(self) -> None:
        """A neighbour whose ranks stand still half of the time leaves the other its share, and the link is busy.

        The link is not quite full: 16 ranks that wake up at once send more than the switch's queue holds, and each lost packet delays a segment.
        """
        self.start_all({"steady": 1, "pulsing": 1})
        steady = Job(self, "steady", 4)
        self.wait_until_all_move(steady)
        time.sleep(SETTLE_SECONDS)
        alone = self.parts()["steady"]
        pulsing = Job(self, "pulsing", 16)
        self.wait_until_all_move(steady, pulsing)
        stop = threading.Event()

        def pulse() -> None:
            while not stop.is_set():
                for number in (signal.SIGSTOP, signal.SIGCONT):
                    pulsing.signal(number)
                    stop.wait(0.2)

        thread = threading.Thread(target=pulse)
        thread.start()
        try:
            time.sleep(SETTLE_SECONDS)
            parts = self.parts()
        finally:
            stop.set()
            thread.join()
            pulsing.signal(signal.SIGCONT)
        self.assertGreater(sum(parts.values()), 0.8 * alone, f"alone {alone}, then {parts}")
        self.assertGreater(parts["steady"], 0.9 * alone / 2, f"alone {alone}, then {parts}")


if __name__ == "__main__":
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "--mount", "true"], check=False, capture_output=True).returncode != 0:
        print("skipped: this process may make no networks")
        sys.exit(SKIPPED)
    if "LINK_SHARES_NETWORK" not in os.environ:
        os.environ["LINK_SHARES_NETWORK"] = "of its own"
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-B", *sys.argv])
    Daemons.root, Daemons.build = Path(sys.argv[1]), Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
