#!/usr/bin/env python3
"""`tributary doctor --measure` and `--fabric` name the link that is slow, lossy, far or too narrow for long frames.

    measure_test.py TRIBUTARY MANAGER AGGREGATOR

The hosts are network namespaces on one bridge. tbf shapes the links, a packet filter makes the loss, and a process
that copies frames from one device to another makes the delay.
"""

import ctypes
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from collections import deque
from pathlib import Path

LIMIT_SECONDS = 60
MTU = 1500
PREFIX = f"dm{os.getpid()}"


def run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr.strip()}")
    return ended.stdout


def enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, 0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "setns")


def open_tap(namespace: str, name: str) -> int:
    """Returns the descriptor of a device in that namespace."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    target = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        enter(target)
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))  # TUNSETIFF: IFF_TAP | IFF_NO_PI
    finally:
        enter(own)
        os.close(own)
        os.close(target)
    return tap


def relay(taps: tuple[int, int], seconds: float) -> None:
    """Copies frames both ways, and delays each frame by this time."""
    queue: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = max(0.0, queue[0][0] - time.monotonic()) if queue else 1.0
        for tap in select.select(taps, [], [], wait)[0]:
            queue.append((time.monotonic() + seconds, taps[1] if tap == taps[0] else taps[0], os.read(tap, 65536)))
        while queue and queue[0][0] <= time.monotonic():
            _, to, frame = queue.popleft()
            try:
                os.write(to, frame)
            except BlockingIOError:
                pass  # the device's queue is full: the frame is lost, as in a switch


class Network:
    """Hosts on one switch. Host number i has the address 10.77.0.i."""

    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self.relays: list[int] = []
        self.switch = self.namespace("switch")
        run("ip", "-n", self.switch, "link", "add", "name", "lan", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "lan", "up")

    def namespace(self, name: str) -> str:
        full = f"{PREFIX}-{name}"
        run("ip", "netns", "add", full)
        self.namespaces.append(full)
        run("ip", "netns", "exec", full, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", "net.ipv6.conf.all.disable_ipv6=1")
        run("ip", "-n", full, "link", "set", "lo", "up")
        return full

    def host(self, number: int, *, out: str = "200mbit", into: str = "200mbit", delay: float = 0) -> str:
        host, port = self.namespace(f"h{number}"), f"p{number}"
        if delay > 0:
            taps = open_tap(host, "eth0"), open_tap(self.switch, port)
            pid = os.fork()
            if pid == 0:
                relay(taps, delay)
            self.relays.append(pid)
            for tap in taps:
                os.close(tap)
        else:
            run("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host)
        run("ip", "-n", self.switch, "link", "set", port, "master", "lan", "up")
        run("ip", "-n", host, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "eth0", "up")
        for where, device, rate in ((host, "eth0", out), (self.switch, port, into)):
            if delay == 0 and rate:
                run("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "64k", "latency", "30ms")
        return host

    def lose(self, number: int, part: float, *, out: bool) -> None:
        """The switch drops this part of the packets that come from a host (`out`) or go to it."""
        random_word = 4294963256  # reads a random number, in the code of packet filters
        program = f"4,32 0 0 {random_word},53 1 0 {int(part * 2**32)},6 0 0 2,6 0 0 4294967295"
        run("tc", "-n", self.switch, "qdisc", "add", "dev", f"p{number}", "clsact")
        run("tc", "-n", self.switch, "filter", "add", "dev", f"p{number}", "ingress" if out else "egress", "bpf", "da", "bytecode", program)

    def start(self, host: str, *command: str, **variables: str) -> subprocess.Popen:
        keep = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
        return subprocess.Popen(["ip", "netns", "exec", host, *command], env=keep | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def close(self) -> None:
        for pid in self.relays:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        for namespace in self.namespaces:
            subprocess.run(["ip", "netns", "del", namespace], check=False, capture_output=True)


class Measure(unittest.TestCase):
    tributary = manager = aggregator = ""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.network = Network()
        self.processes: list[subprocess.Popen] = []
        self.addCleanup(self.clean)

    def clean(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        self.network.close()
        shutil.rmtree(self.folder)

    def wait_for(self, path: Path) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not path.exists():
            self.assertLess(time.monotonic(), end, f"{path} does not come")
            for process in self.processes:
                self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None and process.stderr else "")
            time.sleep(0.05)

    def daemon(self, host: str, *command: str) -> None:
        ready = self.folder / f"ready{len(self.processes)}"
        self.processes.append(self.network.start(host, *command, "--ready-file", str(ready), "--log-level", "error"))
        self.wait_for(ready)

    def cluster(self, hosts: dict[str, str], more: str = "") -> None:
        """Starts the manager on host 1 and an aggregator on each of these hosts."""
        main = self.network.host(1)
        state = self.folder / "state"
        self.daemon(main, self.manager, "--listen", "10.77.0.1:7470", "--allow-plain-http", "--state-dir", str(state))
        for name, host in hosts.items():
            config = self.folder / f"{name}.yaml"
            address = run("ip", "-n", host, "-4", "-br", "address", "show", "eth0").split()[2].split("/")[0]
            config.write_text(f"name: {name}\nlisten: {address}:7471\nhttp_listen: {address}:7472\nmanager: http://10.77.0.1:7470\nline_rate: 200Mbit/s\n"
                              f"token_file: {state}/aggregator.token\nstate_file: {self.folder}/{name}.json\n{more}")
            self.daemon(host, self.aggregator, "--config", str(config))
        self.wait_for_registrations(set(hosts))

    def wait_for_registrations(self, names: set[str]) -> None:
        """Waits until the manager knows them all: an aggregator is ready before that, and losses may delay its request."""
        end = time.monotonic() + LIMIT_SECONDS
        while True:
            text = self.network.start(f"{PREFIX}-h1", self.tributary, "aggregators", "-o", "json", "--manager", "http://10.77.0.1:7470").communicate()[0]
            known = {one["name"] for one in json.loads(text)["aggregators"]}
            if known >= names:
                return
            self.assertLess(time.monotonic(), end, f"the manager knows only {sorted(known)}")
            time.sleep(0.1)

    def findings(self, process: subprocess.Popen, part: str) -> dict[str, dict]:
        text, errors = process.communicate(timeout=LIMIT_SECONDS)
        self.assertTrue(text, errors)
        return {one["what"]: one for one in json.loads(text)["findings"] if one["part"] == part}

    def measure(self, *names: str, **variables: str) -> dict[str, dict]:
        return self.findings(self.network.start(
            f"{PREFIX}-h1", self.tributary, "doctor", "-o", "json", "--manager", "http://10.77.0.1:7470", "--token-file", f"{self.folder}/state/job.token",
            "--measure", *([",".join(names)] if names else []), **variables), "measured")

    def levels(self, found: dict[str, dict], kind: str) -> dict[str, str]:
        return {what.split()[-1]: one["level"] for what, one in found.items() if what.startswith(kind)}

    def test_the_link_that_is_slow_lossy_or_far_is_named(self) -> None:
        hosts = {"fine": self.network.host(2), "slow": self.network.host(3, into="50mbit"), "lossy": self.network.host(4), "far": self.network.host(5, delay=0.004)}
        self.network.lose(4, 0.02, out=True)
        self.cluster(hosts)
        found = self.measure()
        for name in hosts.keys() - {"lossy"}:
            self.assertEqual("each level of a tree" in found[f"round trip to {name}"]["why"], name == "far", found)
        self.assertEqual(self.levels(found, "rate to")["fine"], "good", found)
        self.assertEqual(self.levels(found, "rate to")["slow"], "bad", found)
        self.assertIn("times as long", found["rate to slow"]["why"])
        self.assertEqual(self.levels(found, "loss to")["fine"], "good", found)
        # Rarely the losses hit a handshake or a whole measurement again and again. The doctor then names the way, or says
        # what it could not measure, and not the losses.
        lossy = {one["level"] for what, one in found.items() if what.endswith(" to lossy")}
        self.assertTrue(lossy & {"warning", "bad", "unknown"}, found)
        self.assertEqual(set(self.levels(self.measure("fine"), "rate to")), {"fine"})

    def test_groups_of_measurements_leave_nothing(self) -> None:
        self.cluster({"fine": self.network.host(2)})
        self.measure()
        listed = self.network.start(f"{PREFIX}-h1", self.tributary, "groups", "-o", "json", "--manager", "http://10.77.0.1:7470").communicate()[0]
        self.assertEqual(json.loads(listed)["groups"], [])

    def test_an_aggregator_over_udp_is_measured_over_udp(self) -> None:
        self.cluster({"fine": self.network.host(2)}, "transport: udp\n")
        found = self.measure(TRIBUTARY_TRANSPORT="udp")
        self.assertEqual([what.split(" to ")[0] for what in found], ["rate", "round trip", "loss"], found)
        self.assertRegex(found["rate to fine"]["found"], r"[0-9.]+ Mbit/s there, [0-9.]+ Mbit/s both ways at once, of 200.0 Mbit/s")

    def measure_sealed(self, transport: str) -> None:
        self.cluster({"sealed": self.network.host(2)}, f"transport: {transport}\nsecurity: encrypt\n")
        found = self.measure(TRIBUTARY_TRANSPORT=transport, TRIBUTARY_SECURITY="encrypt")
        self.assertIn("rate to sealed", found)
        self.assertIn("round trip to sealed", found)
        refused = self.measure(TRIBUTARY_TRANSPORT=transport)
        self.assertEqual([finding["level"] for finding in refused.values()], ["unknown"], refused)

    def test_sealed_streams_are_measured_sealed(self) -> None:
        self.measure_sealed("tcp")

    def test_sealed_packets_are_measured_sealed(self) -> None:
        self.measure_sealed("udp")

    def test_a_transport_that_is_not_here_is_the_reason(self) -> None:
        self.cluster({"fine": self.network.host(2)})
        found = self.measure(TRIBUTARY_TRANSPORT="dpdk")
        self.assertIn("the doctor has no device of DPDK", found["way to fine"]["found"])
        self.assertIn("rate to fine", self.measure(TRIBUTARY_TRANSPORT="dpdk,tcp"))

    def test_long_frames_that_vanish_are_found(self) -> None:
        host = self.network.host(2, out="", into="")
        self.cluster({"narrow": host})
        run("tc", "-n", f"{PREFIX}-h1", "qdisc", "del", "dev", "eth0", "root")
        for namespace, device in ((host, "eth0"), (f"{PREFIX}-h1", "eth0"), (self.network.switch, "p1")):
            run("ip", "-n", namespace, "link", "set", device, "mtu", "9000", "gso_max_segs", "1")
        # The port to the aggregator keeps an MTU of 1500, and the bridge drops longer frames.
        found = self.measure()
        self.assertEqual(found["frames to narrow"]["level"], "bad", found)
        self.assertEqual(found["frames to narrow"]["found"], "frames of 9000 bytes vanish, frames of 1500 pass")

    def fabric(self, hosts: int) -> dict[str, dict]:
        ranks = [self.network.start(f"{PREFIX}-h{i + 1}", self.tributary, "doctor", "--fabric", "-o", "json", RANK=str(i), WORLD_SIZE=str(hosts), LOCAL_RANK="0",
                                    MASTER_ADDR="10.77.0.1", MASTER_PORT="29500", TRIBUTARY_HOST_ID=f"node-{i + 1}", TRIBUTARY_IFNAME="eth0", TRIBUTARY_SHM="off",
                                    TRIBUTARY_LOCAL="off") for i in range(hosts)]
        found = self.findings(ranks[0], "fabric")
        for other in ranks[1:]:
            text, errors = other.communicate(timeout=LIMIT_SECONDS)
            self.assertEqual((other.returncode, text), (0, ""), errors)
        return found

    def hosts_named(self, found: dict[str, dict], kind: str) -> set[str]:
        """Returns texts such as "from node-3". The way between two hosts may be slow because this machine has other work."""
        return {what.removeprefix(kind + " ") for what in found if what.startswith(kind) and len(what.split()) == 3}

    def test_the_host_with_the_bad_link_is_named_among_many(self) -> None:
        for i in (1, 2, 4, 5):
            self.network.host(i)
        self.network.host(3, out="20mbit")
        self.network.lose(5, 0.02, out=False)
        found = self.fabric(5)
        self.assertIn("rate from node-3", found)
        self.assertIn("loss to node-5", found)
        self.assertEqual(self.hosts_named(found, "rate") - {"from node-3", "to node-5"}, set(), found)
        self.assertEqual({what for what in found if what.startswith(("connection", "large"))}, set(), found)

    def test_a_good_fabric_has_no_complaint(self) -> None:
        for i in (1, 2, 3):
            self.network.host(i)
        found = self.fabric(3)
        self.assertEqual(self.hosts_named(found, "rate") | self.hosts_named(found, "loss") | self.hosts_named(found, "connection"), set(), found)
        self.assertIn("6 ways measured", found["3 hosts"]["found"])


if __name__ == "__main__":
    if os.geteuid() != 0 or shutil.which("tc") is None:
        print("network namespaces need root and iproute2")
        sys.exit(77)
    Measure.tributary, Measure.manager, Measure.aggregator = (str(Path(name).resolve()) for name in sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main(verbosity=1)
