#!/usr/bin/env python3
"""Jobs of a real Slurm reduce over Tributary's trees, and leave no process or group behind. slurm_test runs this.

jobs_test.py WORK BUILD [TEST...]
"""

import os
import re
import signal
import sys
import time
import unittest
from pathlib import Path

from slurm_cluster import MANAGER, OTHER, USER, Cluster, until

IN_NETWORK = r"in-network [1-9]\d* \(100\.0 %\), fallback 0"
FALLBACK = r"in-network 0.*, fallback [1-9]"
TOKENS = Path("/run/tributary-jobs")


class Jobs(unittest.TestCase):
    cluster: Cluster

    def setUp(self) -> None:
        self.cluster.run("scancel", f"--user={USER}")
        until(60, "no job is left", self.cluster.all_idle)

    def sbatch(self, *arguments: str, command: str) -> str:
        """Submits a job, whose output goes to a separate file, and returns its number."""
        ended = self.cluster.run("sbatch", "--parsable", "--no-requeue", f"--output={self.cluster.work}/meet/%A-%a.out", *arguments, f"--wrap={command}", user=USER)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout.strip()

    def output(self, job: str, element: str = "4294967294") -> str:
        path = self.cluster.work / f"meet/{job}-{element}.out"
        return path.read_text() if path.exists() else ""

    def nothing_stays(self) -> None:
        until(30, "no job is left", self.cluster.all_idle)
        until(10, "the tokens are gone", lambda: not list(TOKENS.glob("*")))
        until(10, "the groups are gone", lambda: not self.cluster.groups())

    # Tests of the option

    def test_the_option_is_in_the_help(self) -> None:
        for command in ("srun", "sbatch", "salloc"):
            self.assertRegex(self.cluster.run(command, "--help").stdout, r"--tributary=KEY=VALUE\[,\.\.\.\]")

    def test_an_unknown_key_is_a_clear_error(self) -> None:
        ended = self.cluster.srun("--nodes=1", "--tributary=lanes=2,colour=high", "true")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("--tributary: colour: there is no such key (allowed: aggregators, lanes, path, priority, transport)", ended.stderr)

    # Tests of the variables

    def test_each_task_gets_manager_token_job_and_its_own_host(self) -> None:
        show = 'echo "$SLURMD_NODENAME $TRIBUTARY_HOST_ID $TRIBUTARY_MANAGER $TRIBUTARY_TOKEN_FILE $TRIBUTARY_JOB $TRIBUTARY_LANES $TRIBUTARY_PRIORITY $SLURM_JOB_ID"'
        ended = self.cluster.srun("--nodes=8", "--ntasks=8", "--tributary=lanes=2,priority=high", "sh", "-c", show, TRIBUTARY_HOST_ID="login")
        lines = [line.split() for line in ended.stdout.splitlines()]
        self.assertEqual(sorted(line[0] for line in lines), [f"n{i}" for i in range(8)], ended.stderr)
        for node, host, manager, token, name, lanes, priority, job in lines:
            self.assertEqual((host, manager, token, name, lanes, priority), (node, MANAGER, f"/run/tributary-jobs/{job}.token", f"slurm-{job}", "2", "high"))

    def test_what_the_user_has_set_stays(self) -> None:
        ended = self.cluster.srun("--nodes=1", "sh", "-c", "echo $TRIBUTARY_MANAGER $TRIBUTARY_TOKEN_FILE $TRIBUTARY_JOB",
                                  TRIBUTARY_MANAGER="http://other:7470", TRIBUTARY_TOKEN_FILE="/my/token", TRIBUTARY_JOB="mine")
        self.assertEqual(ended.stdout.split(), ["http://other:7470", "/my/token", "mine"], ended.stderr)

    def test_the_names_of_another_job_do_not_stay(self) -> None:
        ended = self.cluster.srun("--nodes=1", "sh", "-c", "echo $TRIBUTARY_TOKEN_FILE $TRIBUTARY_JOB $SLURM_JOB_ID",
                                  TRIBUTARY_TOKEN_FILE="/run/tributary-jobs/999999.token", TRIBUTARY_JOB="slurm-999999")
        token, name, job = ended.stdout.split()
        self.assertEqual((token, name), (f"/run/tributary-jobs/{job}.token", f"slurm-{job}"))

    # Tests of the token

    def test_only_its_user_reads_a_jobs_token(self) -> None:
        job = self.sbatch("--nodes=1", command="cat $TRIBUTARY_TOKEN_FILE > /dev/null && echo read; sleep 30")
        until(20, "the job reads its token", lambda: "read" in self.output(job))
        token = TOKENS / f"{job}.token"
        self.assertEqual(self.cluster.run("cat", token, user=USER).returncode, 0)
        for command in (("cat", token), ("ls", TOKENS)):
            self.assertNotEqual(self.cluster.run(*command, user=OTHER).returncode, 0, command)
        self.assertEqual(self.cluster.run("scancel", job).returncode, 0)
        self.nothing_stays()

    def test_a_job_starts_where_there_is_no_token_to_copy(self) -> None:
        source = Path("/etc/tributary/job.token")
        text = source.read_text()
        source.unlink()
        try:
            ended = self.cluster.srun("--nodes=2", "--ntasks=2", *self.cluster.perf("no-token"))
        finally:
            self.cluster.configure_jobs(text)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, FALLBACK)
        self.assertNotIn("drain", self.cluster.run("sinfo", "--noheader", "--format=%T").stdout)

    # Tests of a token of the job's own

    # All nodes of this machine share one folder of tokens, so these jobs have one node.
    ON_ONE_NODE = ("--nodes=1", "--ntasks=2", "--overcommit")

    def with_own_tokens(self) -> None:
        shared = Path("/etc/tributary/job.token").read_text()
        self.cluster.configure_own_tokens()
        self.addCleanup(self.cluster.configure_jobs, shared)

    def test_a_job_has_a_token_of_its_own_which_ends_with_it(self) -> None:
        self.with_own_tokens()
        before = self.cluster.revoked()
        perf = " ".join(self.cluster.perf("own-token"))
        job = self.sbatch(*self.ON_ONE_NODE, "--tributary=path=in-network",
                          command=f"srun --overcommit {perf}; cat $TRIBUTARY_TOKEN_FILE >{self.cluster.work}/meet/kept; {self.cluster.tributary} token show")
        until(60, "the job has shown its token", lambda: "until" in self.output(job))
        self.assertRegex(self.output(job), IN_NETWORK)
        self.assertRegex(self.output(job), r"role +tenant\ntenant +nobody\njob +slurm-" + job)
        self.nothing_stays()
        until(20, "the token is revoked", lambda: self.cluster.revoked() == before + 1)
        kept = self.cluster.work / "meet/kept"
        ended = self.cluster.run(self.cluster.tributary, "plan", "n0", "n1", "--manager", MANAGER, "--token-file", kept)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("revoked", ended.stderr)

    def test_a_killed_job_with_its_own_token_leaves_nothing(self) -> None:
        self.with_own_tokens()
        job = self.start_long_job("killed-own-token", *self.ON_ONE_NODE)
        self.assertEqual(self.cluster.run("scancel", "--signal=KILL", "--full", job).returncode, 0)
        self.nothing_stays()

    # Tests of reserved aggregators

    def with_reservations(self, most: int = 1) -> None:
        shared = Path("/etc/tributary/job.token").read_text()
        self.cluster.configure_own_tokens("tokens,tenants", f"reservation_max = {most}\n")
        self.addCleanup(self.cluster.configure_jobs, shared)

    def aggregators_of(self, job: str) -> set[str]:
        trees = self.cluster.ask("/v1/trees")["trees"]
        groups = {group["group"] for group in self.cluster.groups() if group["job"] == f"slurm-{job}"}
        return {tree["root"]["aggregator"] for tree in trees if tree["group"] in groups}

    def test_aggregators_are_reserved_for_a_job_and_are_free_after_it(self) -> None:
        self.with_reservations()
        job = self.start_long_job("reserved", *self.ON_ONE_NODE, option="aggregators=2,path=in-network")
        reservations = self.cluster.reservations()
        self.assertEqual([(one["name"], one["tenant"], one["job"]) for one in reservations], [(f"slurm-{job}", "nobody", f"slurm-{job}")])
        reserved = set(reservations[0]["aggregators"])
        self.assertEqual(len(reserved), 1, "reservation_max allows one, not two")
        self.assertLess(reservations[0]["end"], time.time() + 3601, "the reservation does not outlive job_token_life")
        other = self.start_long_job("beside", *self.ON_ONE_NODE)
        self.assertFalse(self.aggregators_of(other) & reserved, "a job without a reservation uses only the other aggregator")
        self.assertEqual(self.cluster.run("scancel", "--signal=KILL", "--full", job).returncode, 0)
        until(20, "the reservation has ended", lambda: not self.cluster.reservations())
        self.assertEqual(self.cluster.run("scancel", other).returncode, 0)
        self.nothing_stays()

    def test_a_job_that_does_not_ask_or_may_not_ask_reserves_nothing(self) -> None:
        self.with_reservations()
        self.assertEqual(self.cluster.srun("--nodes=1", "true").returncode, 0)
        self.assertEqual(self.cluster.reservations(), [])
        for what, settings in (("the setting is missing", ""), ("the token may not reserve", "reservation_max = 1\n")):
            with self.subTest(what):
                self.cluster.configure_own_tokens("tokens", settings)
                job = self.sbatch(*self.ON_ONE_NODE, "--tributary=aggregators=1", command="echo begun; sleep 30")
                until(20, "the job has begun", lambda: "begun" in self.output(job))
                self.assertEqual(self.cluster.reservations(), [])
                self.cluster.run("scancel", job)

    def test_a_job_whose_aggregators_another_has_reserved_starts_without(self) -> None:
        self.with_reservations(2)
        first = self.start_long_job("first", *self.ON_ONE_NODE, option="aggregators=2,path=in-network")
        ended = self.cluster.srun(*self.ON_ONE_NODE, "--tributary=aggregators=1", *self.cluster.perf("second"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("Bytes by path", ended.stdout)
        self.assertEqual([one["name"] for one in self.cluster.reservations()], [f"slurm-{first}"])
        self.cluster.run("scancel", first)
        self.nothing_stays()
        self.assertEqual(self.cluster.reservations(), [])

    def test_a_job_starts_while_the_manager_stands_still_or_is_down(self) -> None:
        self.with_reservations()
        manager = self.cluster.processes["manager"]
        for what in ("still", "down"):
            with self.subTest(what):
                manager.send_signal(signal.SIGSTOP) if what == "still" else self.cluster.stop("manager")
                try:
                    begin = time.monotonic()
                    ended = self.cluster.srun("--nodes=1", "--tributary=aggregators=1", "echo", "started", TRIBUTARY_TOKEN_FILE="/none")
                    self.assertIn("started", ended.stdout, ended.stderr)
                    self.assertLess(time.monotonic() - begin, 40, "prolog and token wait 5 s each")
                    until(40, "no job is left", self.cluster.all_idle)
                    if what == "still":
                        until(30, "the prolog's request is late", lambda: time.monotonic() - begin > 12)
                finally:
                    manager.send_signal(signal.SIGCONT) if what == "still" else self.cluster.start_manager()
                self.assertEqual(self.cluster.reservations(), [], "the manager reads the request too late")
        self.assertNotIn("drain", self.cluster.run("sinfo", "--noheader", "--format=%T").stdout)

    # Tests of jobs over trees

    def test_an_allreduce_goes_through_the_tree(self) -> None:
        ended = self.cluster.srun("--nodes=4", "--ntasks=4", "--tributary=lanes=2,path=in-network", *self.cluster.perf("tree"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, IN_NETWORK)
        self.nothing_stays()

    def test_each_element_of_an_array_has_trees_and_a_token_of_its_own(self) -> None:
        command = " ".join(self.cluster.perf("array-$SLURM_ARRAY_TASK_ID"))
        job = self.sbatch("--array=1-3", "--nodes=2", "--ntasks=2", "--tributary=path=in-network", command=f"echo $TRIBUTARY_TOKEN_FILE; srun {command}")
        for element in "123":
            until(60, f"element {element} has ended", lambda: "Bytes by path" in self.output(job, element))
            self.assertRegex(self.output(job, element), IN_NETWORK)
        self.assertEqual(len({self.output(job, element).split()[0] for element in "123"}), 3)
        self.nothing_stays()

    def test_licences_bound_how_many_jobs_run(self) -> None:
        jobs = [self.sbatch("--nodes=1", "--licenses=tributary:1", command="sleep 60") for _ in range(3)]
        states = lambda: sorted(self.cluster.run("squeue", "--noheader", "--format=%T %r").stdout.splitlines())
        until(20, "two run, and one waits for a licence", lambda: states() == ["PENDING Licenses", "RUNNING None", "RUNNING None"])
        self.cluster.run("scancel", *jobs)

    # Tests of the doctor

    def test_the_doctor_measures_the_ways_between_the_hosts_of_a_job(self) -> None:
        ended = self.cluster.srun("--nodes=4", "--ntasks-per-node=1", self.cluster.tributary, "doctor", "--fabric")
        self.assertRegex(ended.stdout, r"fabric +4 hosts +good +12 ways measured; [1-9]", ended.stderr)
        self.assertNotIn("connection from n", ended.stdout)
        self.assertEqual(ended.stdout.count("PART "), 1, "only rank 0 prints")
        self.nothing_stays()

    def test_the_doctor_refuses_the_ranks_of_one_host(self) -> None:
        ended = self.cluster.srun("--nodes=1", "--ntasks=2", "--overcommit", self.cluster.tributary, "doctor", "--fabric")
        self.assertNotEqual(ended.returncode, 0)
        self.assertRegex(ended.stderr, r"all ranks are on host n\d: start one on each of several hosts")

    # Tests of jobs that end by an error or a kill

    def start_long_job(self, name: str, *where: str, option: str = "path=in-network") -> str:
        job = self.sbatch(*(where or ("--nodes=4", "--ntasks=4")), f"--tributary={option}", command=f"srun --overcommit {' '.join(self.cluster.perf(name, '-n', '100000000'))}")
        until(40, "the job has a group on trees", lambda: [group for group in self.cluster.groups() if group["job"] == f"slurm-{job}" and group["path"] == "in-network"])
        return job

    def test_a_killed_job_leaves_nothing_on_the_aggregators(self) -> None:
        job = self.start_long_job("killed")
        self.assertEqual(self.cluster.run("scancel", "--signal=KILL", "--full", job).returncode, 0)
        self.nothing_stays()

    def test_a_node_that_fails_takes_its_job_with_it_and_no_other(self) -> None:
        job = self.start_long_job("node-fails")
        node = "n0" if "n0" in self.cluster.run("squeue", "--noheader", "--format=%N", "--job", job).stdout.replace("n[0", "n0") else "n4"
        self.fail_node(int(node[1:]))
        until(60, "the job has ended", lambda: job not in self.cluster.run("squeue", "--noheader", "--format=%A", "--states=RUNNING").stdout)
        ended = self.cluster.srun("--nodes=4", "--ntasks=4", f"--exclude={node}", "--tributary=path=in-network", *self.cluster.perf("beside"))
        self.assertRegex(ended.stdout, IN_NETWORK, ended.stderr)
        until(30, "the groups are gone", lambda: not self.cluster.groups())
        self.cluster.start_node(int(node[1:]))
        until(60, "the node is back", lambda: self.cluster.run("sinfo", "--noheader", "--format=%T").stdout.split() == ["idle"])

    def fail_node(self, number: int) -> None:
        """Kills all processes of a node at once: its slurmd, the steps, the tasks."""
        self.cluster.stop(f"n{number}", kill=True)
        wanted = f"SLURMD_NODENAME=n{number}".encode()
        victims = set()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if wanted not in (process / "environ").read_bytes().split(b"\0"):
                    continue
                parent = re.search(r"^PPid:\s*(\d+)", (process / "status").read_text(), re.MULTILINE)
            except OSError:
                continue
            victims |= {int(process.name), int(parent[1])} if parent else set()
        for victim in victims - {os.getpid()}:
            if b"slurm" in Path(f"/proc/{victim}/cmdline").read_bytes() or victim != 1:
                os.kill(victim, signal.SIGKILL)

    def test_jobs_start_and_end_while_the_manager_is_down(self) -> None:
        self.cluster.stop("manager")
        try:
            begin = time.monotonic()
            ended = self.cluster.srun("--nodes=2", "--ntasks=2", *self.cluster.perf("no-manager"))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertRegex(ended.stdout, FALLBACK)
            until(20, "no job is left", self.cluster.all_idle)
            self.assertLess(time.monotonic() - begin, 30)
        finally:
            self.cluster.start_manager()
        until(30, "the aggregators are back", lambda: self.cluster.run(self.cluster.tributary, "status", "--manager", MANAGER).returncode == 0)
        ended = self.cluster.srun("--nodes=2", "--ntasks=2", "--tributary=path=in-network", *self.cluster.perf("manager-back"))
        self.assertRegex(ended.stdout, IN_NETWORK, ended.stderr)


def main() -> int:
    work, build = Path(sys.argv[1]), Path(sys.argv[2])
    cluster = Jobs.cluster = Cluster(work, build)
    try:
        cluster.start_munge()
        cluster.configure_jobs("to be replaced\n")
        cluster.start_manager()
        cluster.configure_jobs((work / "manager-state/job.token").read_text())
        for name, host in (("agg-a", "agg-host-a"), ("agg-b", "agg-host-b")):
            cluster.start_aggregator(name, host)
        cluster.start_slurm()
        result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False, verbosity=2).result
        if not result.wasSuccessful():
            for name in ("slurmctld", "n0", "manager"):
                print(f"== the end of {name}'s log\n" + "\n".join(cluster.log(name).splitlines()[-80:]), file=sys.stderr)
        return not result.wasSuccessful()
    finally:
        cluster.end()


if __name__ == "__main__":
    sys.exit(main())
