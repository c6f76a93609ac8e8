"""A Prometheus and an alertmanager of a test's own, with the configuration and the rules of packaging/prometheus."""

import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it
from free_ports import free_port  # noqa: E402

PROGRAMS = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")
RULES = ("tributary-alerts.yml", "tributary-recording.yml")
RANGE = "10s"  # in place of the rules' ranges of minutes, which a test cannot wait for
ALERTMANAGER = """
route: {{receiver: test, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
receivers: [{{name: test, webhook_configs: [{{url: 'http://127.0.0.1:{port}/'}}]}}]
"""


def missing_program() -> str | None:
    return next((program for program in PROGRAMS if shutil.which(program) is None), None)


def quick(rules: str) -> str:
    """Returns the rules with ranges of seconds; everything else stays."""
    return re.sub(r"\[\d+m\]", f"[{RANGE}]", re.sub(r"for: \d+m", "for: 1s", rules))


class Receiver:
    """Gets what alertmanager sends, as a pager would."""

    def __init__(self) -> None:
        firing = self.firing = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                firing.update(alert["labels"]["alertname"] for alert in sent["alerts"] if alert["status"] == "firing")
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: the output belongs to the test."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Monitoring(Daemons):
    def watch(self, **targets: list[str]) -> None:
        """Starts all of them. `targets`: the addresses to read, by the configuration's job without its prefix. The node exporter reads files in self.texts."""
        self.texts = self.folder / "texts"
        self.texts.mkdir()
        node = f"127.0.0.1:{free_port()}"
        self.begin("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={self.texts}",
                   f"--web.listen-address={node}")
        self.receiver = Receiver()
        self.addCleanup(self.receiver.stop)
        self.alertmanager = f"127.0.0.1:{free_port()}"
        self.prometheus = f"127.0.0.1:{free_port()}"
        for file in RULES:
            (self.folder / file).write_text(quick((self.root / "packaging/prometheus" / file).read_text()))
        (self.folder / "prometheus.yml").write_text(self.configuration({f"tributary-{job}": addresses for job, addresses in targets.items()} | {"node": [node]}))
        (self.folder / "alertmanager.yml").write_text(ALERTMANAGER.format(port=self.receiver.port))
        self.begin("prometheus-alertmanager", f"--config.file={self.folder}/alertmanager.yml", f"--storage.path={self.folder}/alertmanager",
                   f"--web.listen-address={self.alertmanager}", "--cluster.listen-address=")
        self.begin("prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/samples", f"--web.listen-address={self.prometheus}")
        for address in (self.alertmanager, self.prometheus):
            self.wait_until(lambda address=address: self.answers(f"http://{address}/-/ready"), f"{address} is not ready")

    def configuration(self, targets: dict[str, list[str]]) -> str:
        text = (self.root / "packaging/prometheus/prometheus.yml").read_text()
        text = text.replace("interval: 15s", "interval: 1s").replace("alertmanager:9093", self.alertmanager)
        for job, addresses in targets.items():
            text, found = re.subn(rf"(job_name: {job}\n.*\n.*targets: )\[.*\]", rf"\1{json.dumps(addresses)}", text)
            self.assertEqual(found, 1, job)
        return text

    def begin(self, program: str, *arguments: str) -> None:
        output = (self.folder / f"{program}.log").open("w")
        self.addCleanup(output.close)
        process = subprocess.Popen([program, *arguments], stdout=output, stderr=output)

        def stop() -> None:
            process.kill()
            process.wait(timeout=LIMIT_SECONDS)

        self.addCleanup(stop)

    def answers(self, url: str) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ask(self, path: str, **parameters: str) -> dict:
        """Returns the data of an answer of Prometheus."""
        with urllib.request.urlopen(f"http://{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)["data"]

    def values(self, expression: str) -> list[dict]:
        return self.ask("query", query=expression)["result"]

    def panels(self) -> list[tuple[str, str, str]]:
        """Returns dashboard, title and expression of each panel, as a dashboard with all choices asks for them."""
        found = []
        for file in sorted((self.root / "packaging/prometheus/dashboards").glob("*.json")):
            for panel in json.loads(file.read_text())["panels"]:
                for target in panel["targets"]:
                    expression = target["expr"].replace("$__rate_interval", RANGE)
                    found.append((file.name, panel["title"], re.sub(r'"\$\w+"', '".+"', expression)))
        return found

    def firing(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def at_alertmanager(self) -> set[str]:
        with urllib.request.urlopen(f"http://{self.alertmanager}/api/v2/alerts?active=true", timeout=LIMIT_SECONDS) as answer:
            return {alert["labels"]["alertname"] for alert in json.load(answer)}

    def wait_for_alert(self, name: str) -> None:
        """Waits until the rule fires, and alertmanager has it and has sent it on."""
        self.wait_until(lambda: name in self.firing(), lambda: f"{name} does not fire; these do: {self.firing()}")
        self.wait_until(lambda: name in self.at_alertmanager(), f"{name} does not come to alertmanager")
        self.wait_until(lambda: name in self.receiver.firing, f"alertmanager does not send {name} on")

    def wait_for_end(self, name: str) -> None:
        self.wait_until(lambda: name not in self.firing(), f"{name} does not end")
