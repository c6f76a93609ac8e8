#!/usr/bin/env python3
"""Every program reports each kind of mistake in its configuration in one form.

    WHERE: KEY: 'VALUE': WHY (allowed: ALLOWED)

mistakes_test.py MANAGER AGGREGATOR TRIBUTARY NCCL_CHECK
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MANAGER, AGGREGATOR, TRIBUTARY, NCCL_CHECK = sys.argv[1:5]
TIME_LIMIT_S = 20
CONFIGURATION, USAGE = 78, 64

# A file with its line, a program with its command, or nothing; a key; a value; the reason; the allowed values.
FORM = re.compile(r"(?:(?P<where>[^:']+(?::\d+)?): )?(?P<key>[\w.-]+): (?:'(?P<value>[^']*)': )?(?P<why>[^()]+(?:\([^()]*\))?[^()]*) \(allowed: (?P<allowed>.+)\)")


def say(*command: str, **environment: str) -> tuple[int, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
    done = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, timeout=TIME_LIMIT_S, stdin=subprocess.DEVNULL)
    return done.returncode, done.stderr


class Mistakes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text: str) -> str:
        path = self.folder / "settings.yaml"
        path.write_text(text)
        return str(path)

    def check(self, said: tuple[int, str], code: int, key: str, value: str | None, why: str, allowed: str) -> re.Match[str]:
        """Checks the first line that has the key, and returns its parts."""
        status, text = said
        lines = [line for line in text.splitlines() if key in line]
        self.assertTrue(lines, text)
        line = re.sub(r"^tributary(-manager|-aggregator| perf: rank \d+: tributary_\w+)?: (?=.*: )", "", lines[0])
        parts = FORM.fullmatch(line)
        self.assertIsNotNone(parts, line)
        self.assertEqual((parts["key"], parts["value"]), (key, value), line)
        self.assertIn(why, parts["why"], line)
        self.assertIn(allowed, parts["allowed"], line)
        self.assertEqual(status, code, line)
        return parts

    def in_files(self, text: str, *expected: str | None, daemons: tuple[str, ...] = (MANAGER, AGGREGATOR)) -> None:
        path = self.file(text)
        for daemon in daemons:
            with self.subTest(daemon=daemon):
                parts = self.check(say(daemon, "--config", path, "--check"), CONFIGURATION, *expected)
                self.assertEqual(parts["where"], f"{path}:{len(text.splitlines())}")

    def in_the_library(self, key: str, *expected: str | None, **environment: str) -> None:
        self.check(say(TRIBUTARY, "perf", "all_reduce", **environment), CONFIGURATION, key, *expected)

    def in_an_option(self, program: str, words: list[str], *expected: str | None) -> None:
        with self.subTest(program=program):
            self.check(say(program, *words), USAGE, *expected)

    # Each kind of mistake

    def test_an_unknown_key_names_the_nearest(self) -> None:
        self.in_files("\nlog_levle: info\n", "log_levle", None, "there is no such setting; is 'log_level' meant?", "log_format")
        path = self.file("lanes: 2\nlnaes: 2\n")
        self.in_the_library("lnaes", None, "there is no such setting; is 'lanes' meant?", "timeout", TRIBUTARY_CONFIG=path)
        for program, words, wrong, near in (
            (MANAGER, [], "--lisen", "--listen"), (AGGREGATOR, [], "--lisen", "--listen"), (NCCL_CHECK, [], "--ranksx", "--ranks"), (TRIBUTARY, ["run"], "--aggregatros", "--aggregators")):
            self.in_an_option(program, [*words, wrong], wrong, None, f"there is no such option; is '{near}", "--help")
        # The word after a misspelt option is its value, and no argument of the command.
        for words, wrong, near in (
            ("perf --warmpu 3", "--warmpu", "--warmup"), ("perf --warmpu=3", "--warmpu", "--warmup"), ("perf all_reduce --iter 3", "--iter", "--iters"), ("perf -z 3", "-z", ""),
            ("explain all_reduce --byets 3", "--byets", "--bytes"), ("token make --rloe admin", "--rloe", "--role"), ("token make --life 3x --rloe admin", "--rloe", "--role"),
            ("drain --mangaer http://m:1 a", "--mangaer", "--manager"), ("groups --wath 3", "--wath", "--watch"), ("plan --ranks -4 --lnaes 2", "--lnaes", "--lanes")):
            self.in_an_option(TRIBUTARY, words.split(), wrong, None, f"is '{near}" if near else "there is no such option", "--help")
        self.in_an_option(TRIBUTARY, ["statsu", "--ranks", "2"], "statsu", None, "is 'status' meant?", "perf")
        self.in_an_option(MANAGER, ["export", "--lisen", "1:1", "file"], "--lisen", None, "is '--listen' meant?", "--config")
        self.in_an_option(TRIBUTARY, ["statsu"], "statsu", None, "there is no such command; is 'status' meant?", "perf")

    def test_a_wrong_type(self) -> None:
        self.in_files("threads: many\n", "threads", "many", "it is no whole number", "1 to 64", daemons=(MANAGER,))
        self.in_files("children_max: many\n", "children_max", "many", "it is no whole number", "1 to 64", daemons=(AGGREGATOR,))
        self.in_files("log_level: loud\n", "log_level", "loud", "it is no", "trace, debug, info, warn or error")
        self.in_the_library("TRIBUTARY_LANES", "x", "it is no whole number", "auto, or a number from 1 to 16", TRIBUTARY_LANES="x")
        self.in_an_option(TRIBUTARY, ["run", "--ranks", "many", "--", "true"], "--ranks", "many", "it is no whole number", "1 to ")
        self.in_an_option(NCCL_CHECK, ["--ranks", "many"], "--ranks", "many", "it is no whole number", "1 to 64")

    def test_a_value_out_of_range(self) -> None:
        self.in_files("threads: 65\n", "threads", "65", "it is above 64", "1 to 64", daemons=(MANAGER,))
        self.in_files("children_max: 0\n", "children_max", "0", "it is below 1", "1 to 64", daemons=(AGGREGATOR,))
        self.in_the_library("TRIBUTARY_LANES", "17", "it is above 16", "1 to 16", TRIBUTARY_LANES="17")
        self.in_an_option(TRIBUTARY, ["run", "--ranks", "0", "--", "true"], "--ranks", "0", "it is below 1", "1 to ")
        self.in_an_option(NCCL_CHECK, ["--ranks", "65"], "--ranks", "65", "it is above 64", "1 to 64")

    def test_a_missing_unit(self) -> None:
        self.in_files("\n\ngroup_lease: 3\n", "group_lease", "3", "it has no unit", "1s to 1h", daemons=(MANAGER,))
        self.in_files("memory: 4\n", "memory", "4", "it has no unit", "1MiB to 16TiB", daemons=(AGGREGATOR,))
        self.in_the_library("TRIBUTARY_LINK_RATE", "25", "it has no unit", "25Gbit/s", TRIBUTARY_LINK_RATE="25")
        self.in_an_option(TRIBUTARY, ["explain", "all_reduce", "--bytes", "1M", "--link-rate", "10"], "--link-rate", "10", "it has no unit", "10Gbit/s")

    def test_two_settings_that_contradict_each_other(self) -> None:
        self.in_files("store: etcd://127.0.0.1:1\nstore_user: me\n", "store_user", "me", "it contradicts store_password_file", "both or none", daemons=(MANAGER,))
        self.in_files("transport: udp\nlisten: ['127.0.0.1:0', '127.0.0.2:0']\n", "listen", "127.0.0.1:0,127.0.0.2:0", "it contradicts transport", "one address", daemons=(AGGREGATOR,))
        self.in_the_library("TRIBUTARY_REQUIRE", "in-network", "it contradicts TRIBUTARY_PATH", "any other path", TRIBUTARY_REQUIRE="in-network", TRIBUTARY_PATH="fallback")
        self.in_an_option(TRIBUTARY, ["perf", "all_reduce", "-b", "2M", "-e", "1M"], "--minbytes", "2097152", "it contradicts --maxbytes", "at most --maxbytes")

    def test_a_file_that_cannot_be_read(self) -> None:
        missing = str(self.folder / "none.yaml")
        for daemon in (MANAGER, AGGREGATOR):
            self.check(say(daemon, "--config", missing), CONFIGURATION, "--config", missing, "it cannot be read: No such file", "the path of a file")
        self.in_the_library("TRIBUTARY_CONFIG", missing, "it cannot be read: No such file", "the path of a file", TRIBUTARY_CONFIG=missing)

    def test_an_option_of_a_daemon_is_named_as_it_was_given(self) -> None:
        self.check(say(MANAGER, "--listen", "nowhere"), CONFIGURATION, "--listen", "nowhere", "the port is missing", "host:port")
        self.check(say(AGGREGATOR, "--workers", "many"), CONFIGURATION, "--workers", "many", "it is no whole number", "0 to 256")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
