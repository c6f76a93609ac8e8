"""Tables of the study's cells, as Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

MIB = 1 << 20
PEERS = ("ring", "double tree", "halving-doubling")


def read(path: Path) -> dict[str, list[dict]]:
    """Returns the cells of each task that has ended."""
    if not path.exists():
        return {}
    lines = [json.loads(it) for it in path.read_text(encoding="utf-8").splitlines()]
    return {it["task"]: it["cells"] for it in lines}


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def part_on_trees(cell: dict) -> float:
    return min(1.0, cell["aggregator_rate"] / cell["rate"] / cell["ranks_per_aggregator"])


def trees_reached(cell: dict) -> float:
    """Returns the rate of the planned trees divided by the greatest rate that the aggregators' links allow."""
    return cell["rates"]["trees"] / (part_on_trees(cell) * cell["rate"])


def best_peer(cell: dict) -> float:
    return min(cell["peers"].values())


def gain(cell: dict) -> float:
    return best_peer(cell) / cell["chosen"]


def of_bound(cell: dict) -> float:
    return cell["bound"] / cell["chosen"]


def aggregators(cell: dict) -> str:
    return f"{cell['ranks'] // cell['ranks_per_aggregator']} x {cell['aggregator_rate'] / 1e9:.0f} Gbit/s"


def table(header: str, rows: Iterable[list[str]], text_columns: int = 1) -> str:
    names = [it.strip() for it in header.split("|")]
    rule = ["---" if it < text_columns else "---:" for it in range(len(names))]
    return "\n".join(f"| {' | '.join(it)} |" for it in [names, rule, *rows])


def order(cell: dict) -> tuple:
    return cell["ranks"], part_on_trees(cell), -cell["ranks_per_aggregator"], cell["rack"], cell["oversubscription"]


def where(cell: dict) -> list[str]:
    return [str(cell["ranks"]), aggregators(cell), str(cell["rack"]), f"{cell['oversubscription']}:1"]


def healthy(cells: list[dict], size: int = 0) -> list[dict]:
    found = [it for it in cells if it["kind"] == "alone" and not it["dead"] and it["straggler"] == 1 and it["lanes"]]
    return sorted((it for it in found if not size or it["bytes"] == size), key=order)


def every_cell(cells: list[dict], size: int) -> str:
    header = (
        "ranks | aggregators | rack | uplinks | lanes, levels | trees reach | ring | double tree | halving-doubling | tree "
        "| chosen way | chosen | times as fast as the best peer | of the bound"
    )
    rows = []
    for cell in healthy(cells, size):
        rows.append([
            *where(cell), f"{cell['lanes']}, {cell['levels']}", f"{trees_reached(cell):.0%}".replace("%", " %"),
            *(ms(cell["peers"][it]) for it in PEERS), ms(cell["tree"]), cell["chosen_way"], ms(cell["chosen"]), f"{gain(cell):.2f}",
            f"{of_bound(cell):.0%}".replace("%", " %"),
        ])  # fmt: skip
    return table(header, rows, 0)


def spread(values: list[float], form: Callable[[float], str]) -> str:
    return f"{form(min(values))} to {form(max(values))}, median {form(statistics.median(values))}"


def by_size(cells: list[dict]) -> str:
    rows = []
    for size in sorted({it["bytes"] for it in healthy(cells)}):
        of_size = healthy(cells, size)
        for aggregators_of in sorted({(it["ranks_per_aggregator"], it["aggregator_rate"]) for it in of_size}, reverse=True):
            group = [it for it in of_size if (it["ranks_per_aggregator"], it["aggregator_rate"]) == aggregators_of]
            gains = [gain(it) for it in group]
            rows.append([
                f"{size // MIB} MiB", f"1 for {aggregators_of[0]} ranks, {aggregators_of[1] / 1e9:.0f} Gbit/s",
                f"{part_on_trees(group[0]):g}", str(len(group)), f"{min(gains):.2f}", f"{statistics.median(gains):.2f}", f"{max(gains):.2f}",
                str(sum(it < 0.97 for it in gains)),
            ])  # fmt: skip
    return table("size | aggregators | c | cells | least | median | most | below 0.97", rows, 2)


def slower(cells: list[dict]) -> str:
    rows = [
        [f"{it['bytes'] // MIB} MiB", *where(it), it["chosen_way"], ms(it["chosen"]), ms(it["chosen_estimate"]), ms(best_peer(it)), f"{gain(it):.2f}"]
        for it in healthy(cells) if gain(it) < 0.97
    ]  # fmt: skip
    return table("size | ranks | aggregators | rack | uplinks | chosen way | simulated | cost model | best peer | ratio", rows, 0)


def without_trees(cells: list[dict]) -> str:
    found = {it["reason"]: it for it in cells if it["kind"] == "alone" and not it["lanes"]}
    return table("ranks | aggregators | rack | the manager's answer", [[*where(it)[:3], reason] for reason, it in found.items()], 0)


def faults(cells: list[dict]) -> str:
    rows = []
    for cell in cells:
        if cell["kind"] != "alone" or (not cell["dead"] and cell["straggler"] == 1):
            continue
        count = cell["ranks"] // cell["ranks_per_aggregator"]
        what = f"{cell['dead']} of {count} aggregators dead" if cell["dead"] else "a rank's link at a tenth"
        rows.append([
            what, *where(cell), f"{cell['lanes']}, {cell['levels']}", *(ms(cell["peers"][it]) for it in PEERS), ms(cell["tree"]),
            cell["chosen_way"], ms(cell["chosen"]), f"{gain(cell):.2f}",
        ])  # fmt: skip
    header = (
        "what | ranks | aggregators | rack | uplinks | lanes, levels | ring | double tree | halving-doubling | tree | chosen way | chosen "
        "| times as fast as the best peer"
    )
    return table(header, rows)


def deaths(cells: list[dict]) -> str:
    rows = [
        [*where(it), it["chosen_way"], f"{it['lanes_lost']} of {it['lanes']}", ms(it["whole"]), ms(it["with_death"]), ms(it["ring"])]
        for it in cells if it["kind"] == "dies"
    ]  # fmt: skip
    return table("ranks | aggregators | rack | uplinks | chosen way | lanes lost | undisturbed | with the death | ring", rows, 0)


def together(cells: list[dict]) -> str:
    rows = []
    for it in sorted((it for it in cells if it["kind"] == "together"), key=lambda it: (it["jobs"], it["oversubscription"], it["spread"])):
        mean = {name: statistics.mean(it[name]) for name in ("ours", "best", *PEERS)}
        rows.append([
            str(it["jobs"]), "every rack" if it["spread"] else "own racks", f"{it['oversubscription']}:1", it["ways"][0], it["ways"][-1],
            *(ms(mean[name]) for name in PEERS), ms(mean["ours"]), ms(max(it["ours"])),
            f"{min(mean[name] for name in PEERS) / mean['ours']:.2f}", f"{it['best_share']:.0%}".replace("%", " %"), ms(mean["best"]),
        ])  # fmt: skip
    header = (
        "jobs | hosts in | uplinks | first job's way | last job's way | ring | double tree | halving-doubling | chosen, mean "
        "| chosen, slowest | times as fast as the best peer | best common share | with it, mean"
    )
    return table(header, rows, 0)


def sound(cells: list[dict]) -> str:
    """Compares the plans with the best possible rates, and the estimates with the simulated times."""
    of_size = healthy(cells, 256 * MIB)
    percent = lambda it: f"{100 * it:.0f} %"  # noqa: E731
    rows = []
    for aggregators_of in sorted({(it["ranks_per_aggregator"], it["aggregator_rate"]) for it in of_size}, reverse=True):
        group = [it for it in of_size if (it["ranks_per_aggregator"], it["aggregator_rate"]) == aggregators_of]
        rows.append([
            f"1 for {aggregators_of[0]} ranks, {aggregators_of[1] / 1e9:.0f} Gbit/s", spread([trees_reached(it) for it in group], percent),
            spread([of_bound(it) for it in group], percent), spread([it["chosen_estimate"] / it["chosen"] for it in group], percent),
        ])  # fmt: skip
    return table("aggregators | trees reach | chosen, of the bound | cost model over simulated", rows)


def planning(cells: list[dict]) -> str:
    rows = []
    for ranks in sorted({it["ranks"] for it in healthy(cells)}):
        times = [it["plan_seconds"] for it in healthy(cells, 256 * MIB) if it["ranks"] == ranks]
        rows.append([str(ranks), f"{min(times):.2g} s", f"{statistics.median(times):.2g} s"])
    return table("ranks | least | median", rows, 0)


def markdown(cells: list[dict]) -> str:
    parts = [("By size and aggregators: times as fast as the best of ring, double tree and halving-doubling", by_size(cells))]
    parts.append(("Plans and estimates, 256 MiB", sound(cells)))
    for size in (256 * MIB, 25 * MIB):
        parts.append((f"Every cell, {size // MIB} MiB, milliseconds", every_cell(cells, size)))
    parts += [
        ("Cells in which the choice is slower than the best peer", slower(cells)), ("No tree", without_trees(cells)),
        ("Stragglers and dead aggregators, 256 MiB, milliseconds", faults(cells)),
        ("An aggregator that dies in mid-operation, 256 MiB, milliseconds", deaths(cells)),
        ("Jobs at once, 4,096 ranks in all, 256 MiB each, milliseconds", together(cells)),
    ]  # fmt: skip
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts if text.count("\n") > 1)
