"""The demo after its set-up: a service, four ranks that train, an aggregator that dies and comes back, and checks of
the result.

demo_run.py --build DIRECTORY     uses the programs in DIRECTORY; scripts/demo runs it in its Python environment
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
WITNESS = "leaf-agg-2"
RANKS_PER_LEAF = 2
WITNESSED_SHARE_MIN = 0.999
KILL_IN_EPOCH = 4
SILENCE_SECONDS_MAX = 60.0  # longest time between two events of the ranks
ACCURACY_MIN = 95.0
GLOO_DIFFERENCE_MAX = 1e-4
TITLES = {
    "interrupted": f"Training over the tree; {VICTIM} is killed on the way",
    "undisturbed": "The same training, undisturbed",
    "gloo": "The same training over gloo, to compare",
}

Event = dict[str, object]


class DemoError(Exception):
    """The demo cannot go on; the text is the reason."""


def step(title: str) -> None:
    print(f"\n== {title}", flush=True)


def say(text: str) -> None:
    print(f"   {text}", flush=True)


def note(text: str) -> None:
    print(f"   >> {text}", flush=True)


class Ranks:
    """The training processes, and the events that they report."""

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
        """Yields every event, until all ranks have ended without an error."""
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
    """Prints the ranks' reports, and has the aggregator killed and started again at the right times."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
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
        where, pause = f"step {event['step']} of epoch {event['epoch']}", event["pause_us"] / 1000
        note(f"{where}: went on after a pause of {pause:.1f} ms; path now: {event['path']}")
        say(f"   ({event['reason']})")

    def _return(self, event: Event) -> None:
        self.back = event
        note(f"step {event['step']} of epoch {event['epoch']}: back on the tree (generation {event['tree_epoch']})")

    def _begin(self, event: Event) -> None:
        step(TITLES[str(event["run"])])
        if counters := event["counters"]:
            say(f"path: {counters['path']}, {counters['levels']} levels of aggregators, {counters['lanes']} lane(s)")
        say("epoch     loss   test accuracy   gradient bytes reduced in-network   seconds")

    def _epoch(self, event: Event) -> None:
        self.epochs.setdefault(str(event["run"]), []).append(event)
        figures = f"{event['epoch']:5}   {event['loss']:6.4f}   {event['accuracy']:11.1f} %"
        say(f"{figures}   {percent(share(event)):>34}   {event['seconds']:7.2f}")
        if self.failover and not self.restarted and event["epoch"] > KILL_IN_EPOCH:
            self.restarted = True
            note(f"{VICTIM} started again (process {self.cluster.services[VICTIM].start()})")

    def _finished(self, event: Event) -> None:
        self.finished.setdefault(str(event["run"]), []).append(event)


def share(epoch: Event) -> float | None:
    """Returns the share of an epoch's gradient bytes that aggregators summed."""
    moved = epoch["gradient_bytes"]
    return moved["in_network"] / sum(moved.values()) if moved and sum(moved.values()) else None


def percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def longest_pause_ms(story: Story) -> float:
    """Returns the longest pause of any rank."""
    return max(event["counters"]["longest_pause_us"] for event in story.finished["interrupted"]) / 1000


class Checks:
    """Returns the checks of the demo, each with the figure that decides it."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.failed = 0

    def expect(self, good: bool, text: str) -> None:
        self.failed += not good
        print(f"   {'ok    ' if good else 'FAILED'}  {text}", flush=True)

    def interruption(self) -> None:
        story = self.story
        self.expect(
            story.failover is not None, f"{VICTIM}'s death was no error: a pause of {longest_pause_ms(story):.1f} ms"
        )
        on_fallback = [share(event) for event in story.epochs["interrupted"] if event["epoch"] == KILL_IN_EPOCH + 1]
        self.expect(
            on_fallback == [0.0], f"without it the ranks reduced between themselves (epoch {KILL_IN_EPOCH + 1})"
        )
        when = f" (epoch {story.back['epoch']})" if story.back else ""
        last = share(story.epochs["interrupted"][-1])
        self.expect(
            story.back is not None and last == 1.0,
            f"with it they came back to the tree{when}: {percent(last)} at the end",
        )

    def equal_ranks(self, run: str) -> None:
        finished = self.story.finished[run]
        digests = {event["digest"] for event in finished}
        self.expect(
            len(digests) == 1 and len(finished) == RANKS, f"parameters are bitwise equal on {RANKS} ranks ({run})"
        )

    def accuracy(self, run: str) -> None:
        accuracy = self.story.finished[run][0]["accuracy"]
        self.expect(accuracy >= ACCURACY_MIN, f"test accuracy {accuracy:.1f} %, at least {ACCURACY_MIN:.0f} % ({run})")

    def in_network(self) -> None:
        least = min(share(event) or 0.0 for event in self.story.epochs["undisturbed"])
        self.expect(
            least == 1.0, f"undisturbed, every gradient byte was reduced in-network (least epoch: {percent(least)})"
        )

    def counted_by_aggregator(self, cluster: Cluster) -> None:
        """Compares the ranks' own counts with that of a leaf that was not killed, which got the gradients of two ranks.

        For the operation that the kill interrupted, the ranks count the in-network part in segments, not in bytes.
        """
        epochs = [event for run in ("interrupted", "undisturbed") for event in self.story.epochs[run]]
        expected = RANKS_PER_LEAF * sum(event["gradient_bytes"]["in_network"] for event in epochs)
        enough = int(WITNESSED_SHARE_MIN * expected)
        counted = cluster.contribution_bytes(WITNESS, enough)
        figures = f"{counted / 1e6:.1f} MB of contributions, by the ranks' count {expected / 1e6:.1f} MB"
        self.expect(counted >= enough > 0, f"{WITNESS} itself counted {figures}")

    def like_gloo(self, folder: Path) -> None:
        name, difference = largest_difference(folder / "undisturbed.pt", folder / "gloo.pt")
        figures = f"{difference:.1e} (tensor {name}), at most {GLOO_DIFFERENCE_MAX:.0e}"
        self.expect(
            difference <= GLOO_DIFFERENCE_MAX, f"undisturbed, the parameters are the same as with gloo: relative difference {figures}"
        )


def largest_difference(ours: Path, theirs: Path) -> tuple[str, float]:
    """Returns the largest |ours - theirs| / |theirs| of a parameter tensor, in the Euclidean norm, and its name."""
    import torch

    a, b = torch.load(ours), torch.load(theirs)
    differences = {name: ((a[name] - b[name]).norm() / b[name].norm()).item() for name in b}
    worst = max(differences, key=differences.__getitem__)
    return worst, differences[worst]


def check_everything(story: Story, cluster: Cluster) -> int:
    step("Is the result right?")
    checks = Checks(story)
    checks.interruption()
    for run in ("interrupted", "undisturbed"):
        checks.equal_ranks(run)
        checks.accuracy(run)
    checks.in_network()
    checks.counted_by_aggregator(cluster)
    checks.like_gloo(cluster.folder)
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
        failed = check_everything(story, cluster)
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
    pause = longest_pause_ms(story)
    say("Four processes trained one model. Their gradients were summed on the way, by aggregators, not by the ranks.")
    say(
        f"When an aggregator was killed in mid-epoch the training paused for {pause:.1f} ms, went on between the ranks,"
    )
    say("and came back to the tree when the aggregator did. No rank saw an error, and all hold the same parameters to")
    say(f"the last bit. It took {seconds:.0f} s. The README says how to use Tributary in a script of your own.")


def main() -> int:
    parser = argparse.ArgumentParser(description="The demo after its set-up; run by scripts/demo")
    parser.add_argument(
        "--build", type=Path, required=True, help="where tributary-manager and tributary-aggregator are"
    )
    parser.add_argument("--keep", type=Path, help="leave configuration and logs in this new directory, to look at them")
    options = parser.parse_args()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    folder = options.keep.resolve() if options.keep else Path(tempfile.mkdtemp(prefix="tributary-demo-"))
    folder.mkdir(parents=True, exist_ok=not options.keep)
    try:
        return run_demo(options.build.resolve(), folder)
    except (ClusterError, DemoError) as error:
        print(f"\nthe demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
