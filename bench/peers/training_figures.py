"""Makes a table from the reports of a training's ranks."""

from __future__ import annotations

from dataclasses import dataclass

import limits
import report
import samples

DIFFERENCE_MAX = 1e-4  # greatest allowed difference between two backends' parameters, relative to the parameters


@dataclass(frozen=True)
class Answer:
    """One rank's report on a number of steps; times are sums."""

    cpu_seconds: float
    seconds: float
    forward_seconds: float
    backward_seconds: float
    optimizer_seconds: float
    loss: float
    path: str
    digest: str

    @staticmethod
    def parse(text: str) -> Answer:
        *numbers, path, digest = text.split()
        return Answer(*map(float, numbers), path, digest)


@dataclass(frozen=True)
class Turn:
    """The steps of all ranks of one contestant in one alternation; times are seconds per step."""

    seconds: float  # time of the slowest rank
    forward_seconds: float  # these three are means over the ranks
    backward_seconds: float
    optimizer_seconds: float
    rank_cpu_seconds: float  # processor time of all ranks together
    aggregator_cpu_seconds: float
    other_cores: float  # cores that the rest of the machine used during this alternation
    loss: float

    @staticmethod
    def of(answers: list[Answer], steps: int, aggregator_cpu_seconds: float, other_cores: float) -> Turn:
        def mean(values: list[float]) -> float:
            return sum(values) / len(values)

        return Turn(
            max(it.seconds for it in answers) / steps,
            mean([it.forward_seconds for it in answers]) / steps,
            mean([it.backward_seconds for it in answers]) / steps,
            mean([it.optimizer_seconds for it in answers]) / steps,
            sum(it.cpu_seconds for it in answers) / steps,
            aggregator_cpu_seconds / steps,
            other_cores,
            mean([it.loss for it in answers]),
        )


def why_wrong(answers: list[Answer], path: str) -> str:
    """Returns the reason why these answers cannot come from one training over `path`; empty if they can."""
    if digests := {it.digest for it in answers} - {answers[0].digest}:
        return f"the ranks' parameters differ: {len(digests) + 1} different sets on {len(answers)} ranks"
    if others := {it.path for it in answers} - {path}:
        return f"reductions went by {', '.join(sorted(others))}, not by {path}"
    return ""


def parameters(layers: int, width: int, characters: int) -> int:
    """Returns the number of parameters of drivers/training_driver.py's model: embeddings, layers, norm and output."""
    attention, feed_forward, norms = 4 * (width * width + width), 8 * width * width + 5 * width, 4 * width
    return (256 + characters) * width + layers * (attention + feed_forward + norms) + 2 * width + 256 * (width + 1)


def communication_limit(gradient_bytes: int, ranks: int, rate: float | None, tree: bool) -> float | None:
    """Returns the seconds that the gradients need on links of this rate, in a tree or only between the ranks."""
    if rate is None:
        return None
    factor = 1.0 if tree else limits.ring_factor(ranks)
    return factor * limits.tree_seconds(gradient_bytes, rate)


def step_limit(compute: list[Turn], communication: float | None) -> float:
    """Returns the time of a step if only the link bounds the reduction. No gradient exists before the end of the
    forward pass, and the optimizer needs all gradients. The backward pass and the reduction run at the same time, so
    the longer of the two counts."""

    def median(name: str) -> float:
        return samples.spread([getattr(it, name) for it in compute]).median

    return (
        median("forward_seconds")
        + max(median("backward_seconds"), communication or 0.0)
        + median("optimizer_seconds")
    )


HEADINGS = (
    "contestant", "step", "+-", "forward", "backward", "optimizer", "link", "step limit", "limit/step", "cpu s ranks",
    "aggr.", "gloo/this", "note",
)  # fmt: skip


def row(name: str, turns: list[Turn], compute: list[Turn], link: float | None, peer: float | None, note: str) -> list[str]:
    """Makes a row. `link` is the time that the gradients need on their links; `peer` is gloo's step."""
    if not turns:
        return [name, *[""] * (len(HEADINGS) - 2), note]
    step = samples.spread([it.seconds for it in turns])
    limit = step_limit(compute, link) if compute else None

    def median(field: str) -> float:
        return samples.spread([getattr(it, field) for it in turns]).median

    return [
        name,
        report.short_time(step.median),
        f"{100 * step.relative:.1f} %",
        *(report.short_time(median(f"{it}_seconds")) for it in ("forward", "backward", "optimizer")),
        report.short_time(link) if link else "",
        report.short_time(limit) if limit else "",
        f"{100 * limit / step.median:.1f} %" if limit else "",
        f"{median('rank_cpu_seconds'):.2f}",
        f"{cpu:.2f}" if (cpu := median("aggregator_cpu_seconds")) else "",
        f"{peer / step.median:.2f}" if peer else "",
        note,
    ]


EXPLANATION = """step: of the slowest rank, median over alternations; +-: half of the distance between the quartiles.
forward, backward, optimizer: means over the ranks; backward includes waiting for the gradients' sums.
link: gradient bytes / rate in a tree, 2(N-1)/N of that among the ranks alone. step limit: the forward pass of computing
alone, then the longer of its backward pass and the link, then its optimizer. cpu s: processor seconds a step, of all
ranks and of all aggregators."""
