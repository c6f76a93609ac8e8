#!/usr/bin/env python3
"""The comparison of scripts/bench-check, with made-up figures.

    check_test.py REPOSITORY
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench/check"))

import cells  # noqa: E402
import compare  # noqa: E402
import programs  # noqa: E402
from compare import Figure  # noqa: E402

BEFORE = Figure(1.0, 0.01, 7)


def verdict(now: Figure, before: Figure = BEFORE) -> str:
    return compare.judge("cell", before, now).verdict


def verdicts(before: dict, now: dict, failures: dict | None = None, chosen: list | None = None) -> dict[str, str]:
    rows = compare.compare(before, now, failures or {}, list(now) if chosen is None else chosen)
    return {row.name: row.verdict for row in rows}


class Judging(unittest.TestCase):
    def test_a_fall_beyond_limit_and_noise_is_reported(self):
        self.assertEqual(verdict(Figure(0.90, 0.01, 7)), compare.FELL)

    def test_a_fall_below_five_percent_is_no_fall(self):
        self.assertEqual(verdict(Figure(0.96, 0.0, 7), Figure(1.0, 0.0, 7)), compare.SAME)

    def test_a_fall_that_noise_explains_is_no_fall(self):
        self.assertEqual(verdict(Figure(0.93, 0.03, 7)), compare.SAME)

    def test_a_rise_is_named_and_fails_nothing(self):
        row = compare.judge("cell", BEFORE, Figure(1.2, 0.01, 7))
        self.assertEqual(row.verdict, compare.ROSE)
        self.assertEqual(compare.exit_code([row], busy=False), 0)

    def test_a_noisy_cell_is_not_judged(self):
        self.assertEqual(verdict(Figure(0.85, 0.30, 5)), compare.NOISY)

    def test_a_noisy_baseline_is_not_judged_by(self):
        self.assertEqual(verdict(Figure(0.95, 0.01, 7), Figure(1.0, 0.30, 5)), compare.NOISY)

    def test_a_fall_that_no_noise_explains_is_reported_of_a_noisy_cell_too(self):
        self.assertEqual(verdict(Figure(0.40, 0.20, 5)), compare.FELL)

    def test_more_alternations_make_the_error_smaller(self):
        self.assertLess(Figure(1.0, 0.1, 20).error, Figure(1.0, 0.1, 5).error)


class Comparing(unittest.TestCase):
    def test_a_cell_that_this_run_lacks_is_missing(self):
        self.assertEqual(verdicts({"a": BEFORE, "b": BEFORE}, {"a": BEFORE}), {"a": compare.SAME, "b": compare.MISSING})

    def test_a_cell_that_the_baseline_lacks_is_new(self):
        self.assertEqual(verdicts({}, {"a": BEFORE}), {"a": compare.NEW})

    def test_a_failed_program_is_named(self):
        found = compare.compare({"a": BEFORE}, {}, {"a": "the sum is wrong"}, ["a"])
        self.assertEqual((found[0].verdict, found[0].reason), (compare.FAILED, "the sum is wrong"))
        self.assertEqual(compare.exit_code(found, busy=False), 1)

    def test_the_table_has_a_line_for_each_cell(self):
        rows = compare.compare({"a": BEFORE, "b": BEFORE}, {"a": Figure(0.5, 0.0, 7)}, {}, ["a"])
        text = compare.table(rows)
        self.assertEqual(len(text.splitlines()), 3)
        self.assertIn("-50.0 %  fell", text)


class ExitCodes(unittest.TestCase):
    @staticmethod
    def code(now: Figure, busy: bool = False) -> int:
        return compare.exit_code([compare.judge("cell", BEFORE, now)], busy)

    def test_nothing_fell(self):
        self.assertEqual(self.code(BEFORE), 0)

    def test_a_fall_on_a_quiet_machine(self):
        self.assertEqual(self.code(Figure(0.8, 0.01, 7)), 1)

    def test_a_fall_on_a_busy_machine_cannot_be_judged(self):
        self.assertEqual(self.code(Figure(0.8, 0.01, 7), busy=True), 2)

    def test_a_noisy_cell_cannot_be_judged(self):
        self.assertEqual(self.code(Figure(1.0, 0.4, 5)), 2)

    def test_a_missing_cell_cannot_be_judged(self):
        self.assertEqual(compare.exit_code(compare.compare({"a": BEFORE}, {}, {}, []), busy=False), 2)


class Figures(unittest.TestCase):
    def test_the_figure_is_the_median_and_half_of_the_quartiles_distance(self):
        self.assertEqual(compare.figure([1.0, 2.0, 3.0, 4.0, 5.0]), Figure(3.0, 1 / 3, 5))

    def test_ratios_are_positive_numbers(self):
        for ratios in ([1.0], [1.0, 0.0], [1.0, float("nan")]):
            with self.assertRaises(ValueError):
                compare.figure(ratios)


class Baselines(unittest.TestCase):
    def test_a_figure_survives_being_written_and_read(self):
        document = {"cells": {"a": BEFORE.as_json()}}
        self.assertEqual(compare.read_baseline(json.loads(json.dumps(document))), {"a": BEFORE})

    def test_a_document_of_another_shape_is_refused(self):
        for document in ([], {}, {"cells": []}, {"cells": {"a": 1}}, {"cells": {"a": {"ratio": 1}}},
                         {"cells": {"a": {"ratio": -1, "spread": 0, "alternations": 5}}},
                         {"cells": {"a": {"ratio": "x", "spread": 0, "alternations": 5}}}):  # fmt: skip
            with self.subTest(document=document), self.assertRaises(compare.BaselineError):
                compare.read_baseline(document)

    def test_bad_json_ends_with_2_and_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "baseline.json"
            file.write_text("{not json")
            done = subprocess.run([sys.executable, "-B", str(ROOT / "bench/check/check.py"), "--baseline", str(file)],
                                  capture_output=True, text=True)  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("it is not JSON", done.stderr)

    def test_the_kept_baseline_can_be_read_and_names_cells_that_exist(self):
        file = ROOT / "bench/baseline.json"
        if not file.exists():
            self.skipTest("there is no bench/baseline.json")
        self.assertLessEqual(set(compare.read_baseline(json.loads(file.read_text()))), {it.name for it in cells.CELLS})


class Programs(unittest.TestCase):
    OUTPUT = json.dumps({"benchmarks": [
        {"name": "copy/bytes:1/real_time", "real_time": 2.0, "time_unit": "us"},
        {"name": "sum/manual_time", "error_occurred": True, "error_message": "the sum is wrong"},
    ]})  # fmt: skip

    def test_times_are_read_in_their_unit(self):
        self.assertAlmostEqual(programs.seconds(self.OUTPUT, "copy/bytes:1"), 2e-6)

    def test_a_wrong_sum_and_an_absent_benchmark_are_errors(self):
        for name, text in (("sum", "the sum is wrong"), ("other", "no benchmark other")):
            with self.assertRaisesRegex(programs.ProgramError, text):
                programs.seconds(self.OUTPUT, name)

    def test_tables_and_labels_are_read(self):
        self.assertEqual(programs.column("ranks us\n    2  3.5\n", 1), 3.5)
        self.assertEqual(programs.labelled("grant 4.5 ms\n", "grant"), 4.5)
        for read in (lambda: programs.column("", 1), lambda: programs.labelled("", "grant")):
            self.assertRaises(programs.ProgramError, read)


class Cells(unittest.TestCase):
    def test_names_differ_and_each_has_a_command(self):
        names = [cell.name for cell in cells.CELLS]
        self.assertEqual(len(names), len(set(names)))
        self.assertTrue(all(cell.command and cell.words for cell in cells.CELLS))


if __name__ == "__main__":
    unittest.main()
