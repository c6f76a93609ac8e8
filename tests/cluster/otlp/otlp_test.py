#!/usr/bin/env python3
"""`tributary metrics --otlp` and `tributary trace --otlp` send what OpenTelemetry's own definitions accept.

    otlp_test.py REPOSITORY BUILD
"""

import base64
import http.server
import json
import re
import subprocess
import sys
import threading
import time
import unittest
from collections import defaultdict
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "system"))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it

RANKS = 3
SPANS_MAX = 1000
UNITS = {"s": "_seconds", "By": "_bytes", "1": ""}


class Collector:
    """Takes OTLP over HTTP, and answers as it is told."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict]] = []
        self.status, self.answer = 200, b"{}"
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json"
                collector.taken.append((self.path, json.loads(body)))
                self.send_response(collector.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(collector.answer)))
                self.end_headers()
                self.wfile.write(collector.answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def attributes_of(values: list) -> dict:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in values}


def with_binary_ids(document: dict) -> dict:
    """Returns the document as protobuf's parser wants it: OTLP writes ids as hexadecimal, protobuf as base64."""
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name, size in (("traceId", 16), ("spanId", 8)):
                    raw = bytes.fromhex(span[name])
                    assert len(raw) == size and any(raw), span
                    span[name] = base64.b64encode(raw).decode()
    return document


class Otlp(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.stop)
        self.ports = self.folder / "ports"
        environment = self.environment(TRIBUTARY_STATUS_DIR=str(self.ports), TRIBUTARY_LOCAL="off", TRIBUTARY_TUNING="off", TRIBUTARY_JOB="training")
        program = str(self.build / "client/cli/tributary")
        run = subprocess.Popen([program, "run", "--ranks", str(RANKS), "--aggregators", "1", "--", program, "perf", "all_reduce", "-b", "64K", "-e", "64K", "-n",
                                "100000000", "-w", "1", "-c", "0"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.wait, LIMIT_SECONDS)
        self.addCleanup(run.terminate)
        self.wait_until(lambda: self.metrics("--job", "training").stdout.count("operation_seconds_count{") >= RANKS, "the ranks count no calls")

    def metrics(self, *more: str) -> subprocess.CompletedProcess:
        return self.tributary("metrics", "--dir", str(self.ports), *more)

    def families(self) -> dict[str, str]:
        """The types of the metrics that have a sample, by name."""
        page = self.metrics().stdout
        return {name: kind for name, kind in re.findall(r"^# TYPE (\S+) (\w+)$", page, re.MULTILINE) if re.search(rf"^{name}(_bucket)?\{{", page, re.MULTILINE)}

    def test_metrics_have_the_names_and_values_of_prometheus(self) -> None:
        before = self.families()
        sent = self.metrics("--otlp", self.collector.url)
        self.assertEqual((sent.returncode, sent.stdout, sent.stderr), (0, "", ""))
        [(path, document)] = self.collector.taken
        self.assertEqual(path, "/v1/metrics")
        [resource] = json_format.ParseDict(document, ExportMetricsServiceRequest()).resource_metrics
        self.assertEqual(attributes_of(resource.resource.attributes)["service.name"], "tributary")
        after = self.families()
        seen = {}
        for metric in resource.scope_metrics[0].metrics:
            kind = metric.WhichOneof("data")
            name = metric.name.replace(".", "_")
            suffix = UNITS[metric.unit]
            name += ("" if name.endswith(suffix) else suffix) + ("_total" if kind == "sum" else "")
            seen[name] = {"sum": "counter", "gauge": "gauge", "histogram": "histogram"}[kind]
            points = getattr(metric, kind).data_points
            self.assertTrue(points, name)
            for point in points:
                self.assertLess(abs(point.time_unix_nano / 1e9 - time.time()), LIMIT_SECONDS)
                self.assertEqual(attributes_of(point.attributes)["job_name"], "training")
                if kind == "histogram":
                    self.assertEqual(len(point.bucket_counts), len(point.explicit_bounds) + 1)
                    self.assertEqual(sum(point.bucket_counts), point.count)
            if kind != "gauge":
                self.assertEqual(getattr(metric, kind).aggregation_temporality, 2)
        # A counter appears with its first event, such as a reason, which may come between two calls.
        self.assertEqual(seen, {name: kind for name, kind in after.items() if name in seen})
        self.assertEqual(before, {name: kind for name, kind in seen.items() if name in before})
        self.assertGreater(len(before), 5)

    def test_the_spans_of_an_operation_have_one_trace(self) -> None:
        begin = time.time_ns()
        traced = self.tributary("trace", "--dir", str(self.ports), "--seconds", "0.5", "--into", str(self.folder / "trace.json"), "--otlp", self.collector.url)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        spans = defaultdict(dict)
        for path, document in self.collector.taken:
            self.assertEqual(path, "/v1/traces")
            request = json_format.ParseDict(with_binary_ids(document), ExportTraceServiceRequest())
            self.assertLessEqual(sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans), SPANS_MAX)
            for resource in request.resource_spans:
                of = attributes_of(resource.resource.attributes)
                self.assertEqual((of["service.name"], of["tributary.job"], of["tributary.ranks"]), ("tributary", "training", RANKS))
                for span in resource.scope_spans[0].spans:
                    attributes = attributes_of(span.attributes)
                    self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)
                    self.assertLess(span.end_time_unix_nano, time.time_ns())
                    spans[attributes["tributary.operation"]][of["tributary.rank"]] = span
        told = int(re.search(r"operations: (\d+)", traced.stdout)[1])
        self.assertEqual(sum(len(ranks) for ranks in spans.values()), told)
        whole = [ranks for ranks in spans.values() if len(ranks) == RANKS]
        self.assertTrue(whole)
        self.assertTrue(any(ranks[0].start_time_unix_nano > begin for ranks in whole), "no operation of the recording")
        self.assertEqual({len({span.trace_id for span in ranks.values()}) for ranks in whole}, {1})
        self.assertEqual(len({ranks[0].trace_id for ranks in whole}), len(whole))
        self.assertEqual(len({span.span_id for ranks in spans.values() for span in ranks.values()}), told)

    def test_says_what_the_collector_does_not_take(self) -> None:
        self.collector.status, self.collector.answer = 503, b"try later"
        refused = self.metrics("--otlp", self.collector.url)
        self.assertEqual((refused.returncode, refused.stderr),
                         (1, f"tributary metrics: the collector at {self.collector.url} answered POST /v1/metrics with 503: try later\n"))
        self.collector.status, self.collector.answer = 200, b'{"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "too old"}}'
        self.assertIn("rejected 2 data points: too old", self.metrics("--otlp", self.collector.url).stderr)
        self.assertIn("the collector at http://127.0.0.1:1 cannot be reached", self.metrics("--otlp", "http://127.0.0.1:1").stderr)
        self.assertEqual(self.metrics("--otlp", "collector:4318").returncode, 64)
        self.assertEqual(self.metrics("--every", "2").returncode, 64)


if __name__ == "__main__":
    Otlp.root, Otlp.build = (Path(argument) for argument in sys.argv[1:3])
    del sys.argv[1:]
    unittest.main(verbosity=1)
