#!/usr/bin/env python3
"""The manager's page in a real Chromium: live events, keys, contrast, widths, and a thousand aggregators within a second.

    page_test.py REPOSITORY BUILD

PAGE_PICTURES names a folder for pictures of the page.
"""

import os
import shutil
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the lines above find it
from fleet import Fleet, topology  # noqa: E402

LEAST_CONTRAST = 4.5  # WCAG 2.1, level AA
READY_MS_MAX = 1000
LOADS = 5
WIDTHS = (400, 1000, 2000)
HOUR = "aggregator_lease: 1h\ngroup_lease: 1h\n"
CONTRAST = (Path(__file__).resolve().parent / "contrast.js").read_text()


class Page(Daemons):
    def serve(self, more: str = HOUR) -> Fleet:
        ready = self.start("manager", "tree-manager/tributary-manager", f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\nlog_level: error\n" + more)
        return Fleet(f"http://127.0.0.1:{ready['port']}", self.folder / "state")

    def browse(self, url: str, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        options = Options()
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--window-size={width},{height}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.addCleanup(self.browser.quit)
        self.resize(width, height)
        self.scheme("dark" if dark else "light")
        self.open(url)

    def open(self, url: str) -> None:
        self.browser.get(url)
        self.wait_until(lambda: self.ready_ms() is not None, lambda: f"the page does not become ready: {self.text('#live')} {self.browser.get_log('browser')}")

    def resize(self, width: int, height: int) -> None:
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def scheme(self, name: str) -> None:
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def run_script(self, script: str, *arguments: object) -> object:
        return self.browser.execute_script(script, *arguments)

    def ready_ms(self) -> float | None:
        return self.run_script("const mark = performance.getEntriesByName('tributary-ready')[0]; return mark ? mark.startTime : null;")

    def text(self, selector: str) -> str:
        return self.run_script("const found = document.querySelector(arguments[0]); return found ? found.textContent : '';", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run_script("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent);", selector)

    def focused(self) -> str:
        return self.run_script("const at = document.activeElement; return at.id || at.dataset.key || at.getAttribute('aria-label') || at.tagName;")

    def press(self, *keys: str) -> None:
        ActionChains(self.browser).send_keys(*keys).perform()

    def start_aggregator(self, name: str, url: str) -> None:
        self.start(name, "aggregator/tributary-aggregator", f"name: {name}\nhost_id: {name}\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nmanager: {url}\nworkers: 1\n"
                   f"token_file: {self.folder}/state/aggregator.token\nstate_file: {self.folder}/{name}.state\nlog_level: error\n")

    def small_fleet(self) -> Fleet:
        """Four racks, six aggregators, three tenants and four groups, one of them with late ranks, one on the fallback."""
        fleet = self.serve()
        self.fleet = fleet
        fleet.ask("PUT", "/v1/topology", topology(racks=4, hosts=8, boxes=1, spines=2), "aggregator")
        for i in range(4):
            fleet.register(f"leaf-{i}", f"box-{i}", 7500 + i)
        for i in range(2):
            fleet.register(f"spine-{i}", f"top-{i}", 7600 + i)
        tokens = {}
        for tenant in ("chemistry", "physics"):
            made = self.tributary("token", "make", "--tenant", tenant, "--life", "1h", "--key-file", f"{self.folder}/state/identity.keys", "-O", f"{self.folder}/{tenant}.token")
            self.assertEqual(made.returncode, 0, made.stderr)
            tokens[tenant] = (self.folder / f"{tenant}.token").read_text().strip()
        nodes = [f"node-{i}" for i in range(32)]
        self.groups = {"train-7b": (fleet.group("train-7b", nodes, tokens["physics"], lanes=2, user="ada"), tokens["physics"]),
                       "protein-fold": (fleet.group("protein-fold", nodes[:8], tokens["chemistry"], lanes=1, user="bob"), tokens["chemistry"]),
                       "evaluation": (fleet.group("evaluation", nodes[8:24], tokens["physics"], lanes=1, user="ada"), tokens["physics"]),
                       "far-away": (fleet.group("far-away", ["elsewhere-1", "elsewhere-2"], "job", user="eve"), "job")}
        return fleet

    def let_flow(self, pace: float = 1.0) -> None:
        """Reports traffic, and late ranks of the first group, in a thread until the test ends."""
        ended = threading.Event()
        thread = threading.Thread(target=self.flow, args=(ended, pace))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ended.set)

    def flow(self, ended: threading.Event, pace: float) -> None:
        shares = {"train-7b": (1.6, 0.4, 0), "protein-fold": (0.5, 0.1, 0.3), "evaluation": (0.9, 0.2, 0.1), "far-away": (0, 0.3, 0)}
        totals = {job: [0.0, 0.0, 0.0] for job in shares}
        group = self.groups["train-7b"][0]
        step, begin = 0, time.monotonic()
        while not ended.is_set():
            seconds, begin = time.monotonic() - begin, time.monotonic()
            wave = 1 + 0.35 * ((step % 7) - 3) / 3
            for job, share in shares.items():
                totals[job] = [total + part * wave * seconds * (1 << 30) for total, part in zip(totals[job], share, strict=True)]
                self.fleet.carry(self.groups[job][0], *(int(total) for total in totals[job]), self.groups[job][1])
            self.fleet.report("leaf-1", [Fleet.late(group, 13, 812, 3), Fleet.late(group, 9, 40)], int(sum(totals["train-7b"])), 2)
            step += 1
            ended.wait(pace)

    def test_a_death_is_shown_live(self) -> None:
        fleet = self.serve("aggregator_lease: 2s\ngroup_lease: 1h\n")
        for name in ("leaf-a", "leaf-b"):
            self.start_aggregator(name, fleet.url)
        self.wait_until(lambda: len(fleet.ask("GET", "/v1/aggregators")["aggregators"]) == 2, "the aggregators do not register")
        group = fleet.group("train", ["leaf-a", "leaf-b"], lanes=1)
        self.browse(f"{fleet.url}/#group={group}")
        self.wait_until(lambda: self.text("#live") == "live", lambda: "the page is not live: " + self.text("#live"))
        self.assertIn(f"Group {group} of job train", self.text("#h-group"))
        self.run_script("window.sameDocument = true;")
        begin = time.monotonic()
        self.processes["leaf-a"].kill()
        self.wait_until(lambda: "aggregator-expired" in self.run_script("return [...document.querySelectorAll('#events li')].map((one) => one.dataset.kind);"),
                        lambda: f"the page tells no death: {self.texts('#events li')}")
        self.assertLess(time.monotonic() - begin, 12, "a lease of 2 s, a tick, and the way to the page")
        self.wait_until(lambda: "leaf-aexpired" in "".join(self.texts("#aggregators tr")), lambda: f"the list does not show it: {self.texts('#aggregators tr')}")
        self.assertEqual(self.run_script("return window.sameDocument;"), True)
        fleet.ask("POST", f"/v1/groups/{group}/rebuild", {"epoch": 1, "failed": ["leaf-a"]}, "job")
        self.wait_until(lambda: any("tree lost" in text for text in self.texts("#events li")), "the page does not tell that the tree is lost")
        fleet.ask("DELETE", f"/v1/groups/{group}", None, "job")
        self.wait_until(lambda: "has ended" in self.text("#h-group"), "the page goes on to show a group that has ended")
        seconds = time.monotonic() - begin
        fetched = self.run_script("return performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/')).length;")
        self.assertLess(fetched, 12 + 3 * seconds, "no polling storm")
        self.processes["leaf-b"].terminate()
        self.processes["leaf-b"].wait(timeout=LIMIT_SECONDS)
        self.wait_until(lambda: any("leaf-b" in text for text in self.texts("#events li")), "the page does not go on")
        self.processes["manager"].terminate()
        self.wait_until(lambda: self.text("#live").startswith("not live"), "the page seems live without a manager")

    def test_keys_reach_everything(self) -> None:
        fleet = self.small_fleet()
        self.browse(fleet.url)
        self.let_flow()
        self.wait_until(lambda: "2 late" in self.text("#h-lag"), lambda: "no rank is late: " + self.text("#h-lag"))
        self.press("/")
        self.assertEqual(self.focused(), "search")
        self.press("fold")
        self.wait_until(lambda: self.texts("#groups tbody a") == ["protein-fold"], lambda: f"search by job: {self.texts('#groups tbody a')}")
        self.press(*[Keys.BACKSPACE] * 4, "node-30")
        self.wait_until(lambda: self.texts("#groups tbody a") == ["train-7b"], lambda: f"search by host: {self.texts('#groups tbody a')}")
        self.press(*[Keys.BACKSPACE] * 7, "spine-1")
        self.wait_until(lambda: self.texts("#aggregators tbody td:first-child") == ["spine-1"], "search by aggregator")
        self.press(*[Keys.BACKSPACE] * 7, "chemistry")
        self.wait_until(lambda: self.texts("#groups tbody a") == ["protein-fold"], "search by tenant")
        self.press(Keys.ESCAPE)
        self.wait_until(lambda: len(self.texts("#groups tbody a")) == 4, "Esc ends the search")
        self.assertNotEqual(self.focused(), "search")
        reached = []
        self.run_script("document.body.focus(); document.activeElement.blur(); window.getSelection().removeAllRanges(); window.scrollTo(0, 0);")
        for _ in range(40):
            self.press(Keys.TAB)
            reached.append(self.focused())
            self.assertTrue(self.run_script("const at = document.activeElement; return at === document.body || at.matches(':focus-visible');"), reached)
        for wanted in ("search", "theme", "events"):
            self.assertIn(wanted, reached)
        for start in ("group ", "aggregator ", "lane ", "32 ranks"):
            self.assertTrue(any(one.startswith(start) or one == "BUTTON" and start == "lane " for one in reached), (start, reached))
        self.run_script("document.querySelector('#groups tbody a').focus();")
        self.press(Keys.ARROW_DOWN)
        second = self.focused()
        self.press(Keys.ENTER)
        self.wait_until(lambda: self.run_script("return location.hash;") == "#group=" + second.split()[1], "Enter does not choose the group")
        self.open(f"{fleet.url}/#group={self.groups['train-7b'][0]}")
        self.wait_until(lambda: "train-7b" in self.text("#h-group"), "a link to a group does not open it")
        self.run_script("document.querySelector('#tree [tabindex=\"0\"]').focus();")
        root = self.focused()
        self.press(Keys.ARROW_RIGHT)
        child = self.focused()
        self.assertNotEqual(child, root)
        self.press(Keys.ARROW_LEFT)
        self.assertEqual(self.focused(), root)
        self.run_script("document.querySelector('#lag canvas').focus();")
        self.press(Keys.ARROW_RIGHT)
        self.assertIn("rank 14 on node-14: on time", self.text("#lag .caption"), "the keys begin at the latest rank, 13")
        before = self.text("#theme")
        self.run_script("document.querySelector('#theme').focus();")
        self.press(Keys.SPACE)
        self.assertNotEqual(self.text("#theme"), before)
        self.assertEqual(self.run_script("return document.documentElement.dataset.theme;"), "dark")
        self.assertEqual(self.complaints(), [])

    def complaints(self) -> list[dict]:
        """Returns the complaints of the browser, except about connections that the manager closed at the moment of use: the page asks again."""
        return [line for line in self.browser.get_log("browser") if line["level"] in ("SEVERE", "WARNING") and "net::ERR_SOCKET" not in line["message"]]

    def loads(self) -> dict[str, list[str]]:
        """Returns the cells of each link of the list, by its name."""
        rows = self.run_script("return [...document.querySelectorAll('#links tr')].map((row) => [...row.cells].map((cell) => cell.textContent));")
        return {row[0]: row[1:] for row in rows}

    @staticmethod
    def percent(cells: list[str]) -> float:
        return float(cells[1].removesuffix(" %"))

    def test_the_loads_of_links_are_those_of_all_groups_or_of_one(self) -> None:
        fleet = self.small_fleet()
        self.browse(f"{fleet.url}/#group={self.groups['protein-fold'][0]}")
        self.let_flow(0.2)
        self.wait_until(lambda: len(self.loads()) == 10, lambda: f"not all links that carry bytes are shown: {self.loads()}")
        self.wait_until(lambda: any(cells[-1] == "2 groups" for cells in self.loads().values()), lambda: f"no link is shared: {self.loads()}")
        self.assertIn("by all groups", "".join(self.texts("#tree .edge title")))
        every = self.loads()
        self.run_script("document.querySelector('#whose [tabindex=\"0\"]').focus();")
        self.press(Keys.ARROW_RIGHT, Keys.ENTER)
        self.wait_until(lambda: "by this group" in "".join(self.texts("#tree .edge title")), "the switch does not change the tree's colours")
        one = self.loads()
        self.assertTrue(all(len(cells) == 3 for cells in one.values()), one)
        self.assertNotIn("node-20", "".join(one), "the group has no rank there")
        shared = [name for name in one if name in every and every[name][-1] != "1 group"]
        self.assertTrue(shared, (one, every))
        for name in shared:
            self.assertGreater(self.percent(every[name]), self.percent(one[name]), name)
        self.press(Keys.ARROW_LEFT, Keys.ENTER)
        self.wait_until(lambda: "by all groups" in "".join(self.texts("#tree .edge title")), "the switch does not go back")
        self.assertEqual(self.complaints(), [])

    def test_looks_right_at_each_width_in_light_and_dark(self) -> None:
        fleet = self.small_fleet()
        fleet.ask("POST", "/v1/aggregators/leaf-3/drain", None, "aggregator")
        self.browse(f"{fleet.url}/#group={self.groups['train-7b'][0]}")
        pictures = Path(os.environ["PAGE_PICTURES"]) if "PAGE_PICTURES" in os.environ else None
        self.let_flow()
        time.sleep(90 if pictures else 6)  # a picture has more to show after some time; no result depends on it
        self.wait_until(lambda: "Nothing flows" not in self.text("#links"), "no bytes flow")
        for dark in (False, True):
            self.scheme("dark" if dark else "light")
            for width in WIDTHS:
                with self.subTest(dark=dark, width=width):
                    self.resize(width, 900)
                    time.sleep(0.4)  # the page redraws 0.1 s after a change of its size
                    self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth;"), width, "the page scrolls to the side")
                    seen, bad = self.run_script(CONTRAST, LEAST_CONTRAST)
                    self.assertGreater(seen, 100)
                    self.assertEqual(bad, [])
                    if pictures:
                        self.take_picture(pictures / f"page-{width}-{'dark' if dark else 'light'}.png", width)
        self.assertEqual(self.complaints(), [])

    def take_picture(self, file: Path, width: int) -> None:
        height = self.run_script("return document.documentElement.scrollHeight;")
        self.resize(width, height)
        time.sleep(0.4)
        self.browser.save_screenshot(str(file))

    def test_words_from_the_manager_are_no_markup_and_nothing_comes_from_elsewhere(self) -> None:
        fleet = self.serve()
        evil = "<img src=x onerror=alert(1)>"
        group = fleet.group(evil, ["a", "b"], user=evil)
        self.browse(fleet.url)
        self.assertIn(evil, self.texts("#groups tbody a"))
        self.assertIn(evil, self.text("#h-group"))
        self.assertIn(str(group), self.text("#h-group"))
        self.assertEqual(self.run_script("return document.querySelectorAll('main img').length;"), 0)
        loaded = self.run_script("return performance.getEntriesByType('resource').map((one) => one.name);")
        self.assertEqual([name for name in loaded if not name.startswith(fleet.url + "/")], [])
        self.assertEqual(self.complaints(), [])
        ran = self.run_script("const made = document.createElement('script'); made.textContent = 'window.ran = true'; document.body.append(made); return window.ran === true;")
        self.assertFalse(ran, "the policy lets a script in the page run")

    def test_asks_for_a_token_where_reads_need_one(self) -> None:
        fleet = self.serve(HOUR + "reads_need_token: true\n")
        fleet.group("train", ["a", "b"])
        self.browse_without_token(fleet.url)
        self.run_script("document.querySelector('#token').focus();")
        self.press(fleet.secrets["job"], Keys.ENTER)
        self.wait_until(lambda: self.texts("#groups tbody a") == ["train"], "the token does not open the page")
        self.wait_until(lambda: self.text("#live") == "live", "the stream takes no token")

    def browse_without_token(self, url: str) -> None:
        ready, self.ready_ms = self.ready_ms, lambda: 0.0
        self.browse(url)
        self.ready_ms = ready
        self.wait_until(lambda: not self.run_script("return document.querySelector('#sign-in').hidden;"), "the page asks for no token")

    def test_a_thousand_aggregators_and_ten_thousand_ranks_within_a_second(self) -> None:
        fleet = self.serve()
        fleet.ask("PUT", "/v1/topology", topology(racks=100, hosts=100, boxes=10, spines=4), "aggregator")
        for i in range(1000):
            fleet.register(f"aggregator-{i:03}", f"box-{i}", 8000 + i)
        nodes = [f"node-{i}" for i in range(10_000)]
        large = fleet.group("largest", nodes[:8000], lanes=1)
        for i in range(31):
            fleet.group(f"job-{i}", nodes[8000 + 64 * i:8064 + 64 * i], lanes=1)
        self.browse(f"{fleet.url}/#group={large}")
        times = []
        for _ in range(LOADS):
            self.browser.get("about:blank")
            self.open(f"{fleet.url}/#group={large}")
            times.append(self.ready_ms())
        print(f"1,000 aggregators, 9,984 ranks: ready after {', '.join(f'{time:.0f}' for time in sorted(times))} ms", file=sys.stderr)
        self.assertIn("1,000", self.text("#aggregators-count"))
        self.assertIn("8,000 ranks", self.text("#h-lag"))
        self.assertGreater(len(self.texts("#tree .node")), 10)
        self.assertLess(len(self.texts("#tree .node")), 400, "the tree is folded")
        self.assertLess(min(times), READY_MS_MAX)
        if "PAGE_PICTURES" in os.environ:
            self.resize(1600, 900)
            time.sleep(0.5)
            self.take_picture(Path(os.environ["PAGE_PICTURES"]) / "page-large.png", 1600)


if __name__ == "__main__":
    Page.root, Page.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:3]
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys
    except ImportError:
        print("skipped: selenium is missing (scripts/setup --cluster)")
        sys.exit(77)
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: Chromium or chromedriver is missing (scripts/setup --cluster)")
        sys.exit(77)
    unittest.main(verbosity=1)
