"""The demo after its set-up: a service, four ranks that train, an aggregator that dies and comes back, and checks of
the result.

demo_run.py --build DIRECTORY     with the built programs; run by scripts/demo, in its Python environment
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from demo_cluster import AGGREGATORS, RANKS, Cluster, ClusterError, die_with_parent

VICTIM = "leaf-agg-1"
KILL_IN_EPOCH = 4
SILENCE_SECONDS_MAX = 60.0  # between two events
ACCURACY_MIN = 95.0
GLOO_DIFFERENCE_MAX = 1e-4
TITLES = {
    "interrupted": f"Training over the tree; {VICTIM} is killed on the way",
    "undisturbed": "The same training, undisturbed",
    "gloo": "The same training over gloo, to compare",
}

Event = dict[str, object]


class DemoError(Exception):
    """The demo cannot go on; the text says why."""


def step(title: str) -> None:
    print(f"\n== {title}", flush=True)


def say(text: str) -> None:
    print(f"   {text}", flush=True)


def note(text: str) -> None:
    print(f"   >> {text}", flush=True)


class Ranks:
    """The training processes, and the events they report."""

    def __init__(self, cluster: Cluster) -> None:
        self.folder = cluster.folder
        self.events: queue.Queue[tuple[int, Event | None]] = queue.Queue()
        self.processes: list[subprocess.Popen[str]] = []
        program = str(Path(__file__).with_name("demo_train.py"))
        for rank in range(RANKS):
            environment = {key: value for key, value in os.environ.items() if not key.startswith("TRIBUTARY_")}
            environment |= {
                "RANK": str(rank),
                "WORLD_SIZE": str(RANKS),
                "OMP_NUM_THREADS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            environment |= cluster.environment(rank)
            with self.log(rank).open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, program, "--folder", str(self.folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=die_with_parent,
                )
            self.processes.append(process)
            threading.Thread(target=self._read, args=(rank,), daemon=True).start()

    def log(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.log"

    def _read(self, rank: int) -> None:
        for line in self.processes[rank].stdout or ():
            self.events.put((rank, json.loads(line)))
        self.events.put((rank, None))

    def follow(self):
        """Every event, until all ranks have ended well."""
        running = RANKS
        while running:
            try:
                rank, event = self.events.get(timeout=SILENCE_SECONDS_MAX)
            except queue.Empty:
                raise DemoError(f"the ranks said nothing for {SILENCE_SECONDS_MAX:.0f} s\n{self.logs()}") from None
            if event is not None:
                yield event
            elif self.processes[rank].wait() == 0:
                running -= 1
            else:
                raise DemoError(f"rank {rank} ended with exit code {self.processes[rank].returncode}\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"rank {rank}:\n{self.log(rank).read_text(errors='replace')[-1500:]}" for rank in range(RANKS))

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


class Story:
    """Prints what the ranks report, and has the aggregator killed and started again as it goes."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.run = ""
        self.epochs: dict[str, list[Event]] = {}
        self.finished: dict[str, list[Event]] = {}
        self.failover: Event | None = None
        self.back: Event | None = None
        self.killed_in = 0
        self.restarted = False

    def tell(self, event: Event) -> None:
        getattr(self, "_" + str(event["event"]).replace("-", "_"))(event)

    def _mid_epoch(self, event: Event) -> None:
        if event["run"] != "interrupted" or event["epoch"] != KILL_IN_EPOCH or self.killed_in:
            return
        self.killed_in = KILL_IN_EPOCH
        victim = self.cluster.services[VICTIM]
        pid = victim.process.pid if victim.process else 0
        victim.kill()
        note(f"in the middle of epoch {KILL_IN_EPOCH}: {VICTIM} (process {pid}) killed with SIGKILL")

    def _failover(self, event: Event) -> None:
        self.failover = self.failover or event
        note(
            f"step {event['step']} of epoch {event['epoch']}: the ranks went on after a pause of {event['pause_us'] / 1000:.1f} ms; path now: {event['path']}"
        )
        say(f"   ({event['reason']})")

    def _return(self, event: Event) -> None:
        self.back = event
        note(
            f"step {event['step']} of epoch {event['epoch']}: back on the tree, generation {event['tree_epoch']} of it"
        )

    def _epoch(self, event: Event) -> None:
        run = str(event["run"])
        if run != self.run:
            self.run = run
            step(TITLES[run])
            say("epoch     loss   test accuracy   gradient bytes reduced in-network   seconds")
        self.epochs.setdefault(run, []).append(event)
        share = "-" if event["share"] is None else f"{100 * event['share']:.1f} %"
        say(
            f"{event['epoch']:5}   {event['loss']:6.4f}   {event['accuracy']:11.1f} %   {share:>34}   {event['seconds']:7.2f}"
        )
        if self.failover and not self.restarted and event["epoch"] > KILL_IN_EPOCH:
            self.restarted = True
            note(f"{VICTIM} started again (process {self.cluster.services[VICTIM].start()})")

    def _finished(self, event: Event) -> None:
        self.finished.setdefault(str(event["run"]), []).append(event)


class Checks:
    """What the demo proves, each with the figure it was decided by."""

    def __init__(self) -> None:
        self.failed = 0

    def expect(self, good: bool, text: str) -> None:
        self.failed += not good
        print(f"   {'ok    ' if good else 'FAILED'}  {text}", flush=True)

    def interruption(self, story: Story) -> None:
        failover, back = story.failover, story.back
        self.expect(
            failover is not None,
            f"{VICTIM}'s death was survived"
            + (f": a pause of {failover['pause_us'] / 1000:.1f} ms, no error" if failover else ""),
        )
        self.expect(back is not None, "the ranks came back to the tree" + (f" (epoch {back['epoch']})" if back else ""))
        last = story.epochs["interrupted"][-1]
        self.expect(
            last["share"] == 1.0,
            f"and were wholly on it at the end: {percent(last['share'])} of the last epoch's gradient bytes",
        )

    def equal_ranks(self, story: Story, run: str) -> None:
        digests = {event["digest"] for event in story.finished[run]}
        ranks = len(story.finished[run])
        self.expect(len(digests) == 1 and ranks == RANKS, f"parameters are bitwise equal on {RANKS} ranks ({run})")

    def accuracy(self, story: Story, run: str) -> None:
        accuracy = story.finished[run][0]["accuracy"]
        self.expect(accuracy >= ACCURACY_MIN, f"test accuracy {accuracy:.1f} %, at least {ACCURACY_MIN:.0f} % ({run})")

    def in_network(self, story: Story) -> None:
        shares = [event["share"] for event in story.epochs["undisturbed"]]
        self.expect(
            min(shares) == 1.0,
            f"undisturbed, every gradient byte was reduced in-network (least epoch: {percent(min(shares))})",
        )

    def like_gloo(self, folder: Path) -> None:
        name, difference = largest_difference(folder / "undisturbed.pt", folder / "gloo.pt")
        self.expect(
            difference <= GLOO_DIFFERENCE_MAX,
            f"undisturbed, the parameters are gloo's: largest relative difference of a tensor {difference:.1e} ({name}), at most {GLOO_DIFFERENCE_MAX:.0e}",
        )


def percent(share: object) -> str:
    return f"{100 * float(share):.1f} %" if share is not None else "none"


def largest_difference(ours: Path, theirs: Path) -> tuple[str, float]:
    """|ours - theirs| / |theirs| in the Euclidean norm, the largest over the parameter tensors."""
    import torch

    a, b = torch.load(ours), torch.load(theirs)
    differences = {name: ((a[name] - b[name]).norm() / b[name].norm()).item() for name in b}
    worst = max(differences, key=differences.__getitem__)
    return worst, differences[worst]


def check_everything(story: Story, folder: Path) -> int:
    step("Is the result right?")
    checks = Checks()
    checks.interruption(story)
    for run in ("interrupted", "undisturbed"):
        checks.equal_ranks(story, run)
        checks.accuracy(story, run)
    checks.in_network(story)
    checks.like_gloo(folder)
    return checks.failed


def run_demo(build: Path, folder: Path) -> int:
    start = time.monotonic()
    cluster, ranks = Cluster(build, folder), None
    try:
        step(f"The service: a manager and {len(AGGREGATORS)} aggregators, two leaves under a root")
        cluster.start()
        for name, service in cluster.services.items():
            say(f"{name:10} process {service.process.pid if service.process else 0}")
        say(f"the manager's interface: {cluster.url}/v1/trees")
        say(f"starting {RANKS} ranks (each loads PyTorch: some seconds) ...")
        ranks = Ranks(cluster)
        story = Story(cluster)
        for event in ranks.follow():
            story.tell(event)
        failed = check_everything(story, folder)
    finally:
        if ranks:
            ranks.kill()
        cluster.stop()
    step("In short")
    summary(story, failed, time.monotonic() - start)
    return 1 if failed else 0


def summary(story: Story, failed: int, seconds: float) -> None:
    if failed:
        say(f"{failed} check(s) FAILED; see above.")
        return
    counters = story.finished["interrupted"][0]["counters"]
    say(
        "Four processes trained one model. Their gradients were summed on the way, by aggregators, not by the ranks themselves."
    )
    say(
        f"When an aggregator was killed in mid-epoch the training paused for {counters['longest_pause_us'] / 1000:.1f} ms, went on between the ranks, and came"
    )
    say(
        "back to the tree when the aggregator did. No rank saw an error, and all hold the same parameters to the last bit."
    )
    say(f"It took {seconds:.0f} s. The README says how to use Tributary in a training script of your own.")


def main() -> int:
    parser = argparse.ArgumentParser(description="The demo after its set-up; run by scripts/demo")
    parser.add_argument(
        "--build", type=Path, required=True, help="the build directory with tributary-manager and tributary-aggregator"
    )
    build = parser.parse_args().build.resolve()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    folder = Path(tempfile.mkdtemp(prefix="tributary-demo-"))
    try:
        return run_demo(build, folder)
    except (ClusterError, DemoError) as error:
        print(f"\nthe demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
