"""A cluster of records: the test registers aggregators and makes groups over REST, and reports for them."""

import json
import urllib.request
from pathlib import Path

LIMIT_SECONDS = 60.0
MEMORY = 4 << 30
GBIT = 1_000_000_000


def topology(racks: int, hosts: int, boxes: int, spines: int) -> str:
    """A fat-tree. Each rack has `hosts` hosts for ranks, and `boxes` hosts for aggregators; each spine has a box, too."""
    lines = ["fabric: fat-tree", "switches:", f'  - {{name: "rack-[0-{racks - 1}]", level: 1}}', f'  - {{name: "spine-[0-{spines - 1}]", level: 2}}',
             f'hosts: ["node-[0-{racks * hosts - 1}]", "box-[0-{racks * boxes - 1}]", "top-[0-{spines - 1}]"]', "links:"]
    for rack in range(racks):
        lines.append(f'  - {{from: "node-[{rack * hosts}-{(rack + 1) * hosts - 1}]", to: rack-{rack}, rate: 100Gbit/s}}')
        lines.append(f'  - {{from: "box-[{rack * boxes}-{(rack + 1) * boxes - 1}]", to: rack-{rack}, rate: 200Gbit/s}}')
    lines += [f"  - {{from: top-{spine}, to: spine-{spine}, rate: 200Gbit/s}}" for spine in range(spines)]
    return "\n".join([*lines, f'  - {{from: "rack-[0-{racks - 1}]", to: "spine-[0-{spines - 1}]", rate: 400Gbit/s}}']) + "\n"


class Fleet:
    def __init__(self, url: str, state: Path) -> None:
        self.url = url
        self.secrets = {name: (state / f"{name}.token").read_text().strip() for name in ("aggregator", "job")}

    def ask(self, method: str, path: str, body: object = None, secret: str = "") -> dict:
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        token = self.secrets.get(secret, secret)
        request = urllib.request.Request(self.url + path, data, {"Authorization": f"Bearer {token}"} if token else {}, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as answer:
            return json.load(answer)

    def register(self, name: str, host: str, port: int) -> None:
        self.ask("POST", "/v1/aggregators", {"name": name, "host": host, "data": f"127.0.0.1:{port}", "http": "127.0.0.1:7472", "memory_bytes": MEMORY,
                                             "line_rate_bits_per_second": 200 * GBIT}, "aggregator")

    def report(self, name: str, late: list[dict], total: int = 0, lanes: int = 0) -> None:
        self.ask("PUT", f"/v1/aggregators/{name}/lease", {"load": {"late": late, "contribution_bytes_total": total, "lanes_active": lanes}}, "aggregator")

    def group(self, job: str, hosts: list[str], secret: str = "job", **more: object) -> int:
        return self.ask("POST", "/v1/groups", {"job": job, "ranks": hosts, **more}, secret)["group"]

    def carry(self, group: int, in_network: int, between_ranks: int, shared: int, secret: str = "job") -> None:
        traffic = {"operations": 1, "bytes_in_network": in_network, "bytes_between_ranks": between_ranks, "bytes_in_shared_memory": shared}
        self.ask("PUT", f"/v1/groups/{group}/lease", {"traffic": traffic}, secret)

    @staticmethod
    def late(group: int, rank: int, milliseconds: int, behind: int = 1) -> dict:
        return {"group": group, "rank": rank, "lag_milliseconds": milliseconds, "late_milliseconds": 4000, "operations_behind": behind}
