#!/usr/bin/env python3
"""Dependencies point one way, and folders that must do no I/O do none: the check fails on an #include that breaks one
of these rules, and on folders that include each other in a circle.

    layering_test.py REPOSITORY

A layer is a folder; if a file lies in several layers, the longest path counts. A layer may include itself and the
layers that LAYERS lists for it. docs/architecture.md has a picture of these rules.
"""

import re
import sys
import unittest
from pathlib import Path

import tracked

PROTOCOL = {"protocol"}
DATA_PLANE = {"protocol", "kernels", "transport"}
MANAGER = {"protocol", "service-kit", "tree-manager/topology", "tree-manager/planner", "tree-manager/store", "tree-manager/service", "tree-manager/identity"}
# Each of the client's folders may include the folders before it.
CLIENT_CORE = {*DATA_PLANE, "client/operation", "client/schedule", "client/tuning", "client/control"}
COLLECTIVES = {"client/collectives/in_network", "client/collectives/fallback", "client/collectives/local", "client/collectives/hosts"}
CLIENT = {*CLIENT_CORE, *COLLECTIVES, "client/recovery", "client/communicator"}

# layer: the layers that it may include
LAYERS: dict[str, set[str]] = {
    "protocol": set(),
    "service-kit": PROTOCOL,
    "kernels": PROTOCOL,
    "transport": PROTOCOL,
    "aggregator/engine": {"protocol", "kernels"},
    "aggregator/worker": {*DATA_PLANE, "aggregator/engine"},
    "aggregator": {*DATA_PLANE, "aggregator/engine", "aggregator/worker", "service-kit", "tree-manager/api-client"},
    "tree-manager/api-client": {*PROTOCOL, "service-kit"},
    "tree-manager/topology": {*PROTOCOL, "service-kit"},
    "tree-manager/planner": {*PROTOCOL, "service-kit", "tree-manager/topology"},
    "tree-manager/store": {*PROTOCOL, "service-kit", "tree-manager/topology", "tree-manager/planner"},
    "tree-manager/service": MANAGER - {"service-kit", "tree-manager/identity"},
    "tree-manager/identity": PROTOCOL,
    "tree-manager": MANAGER,
    "client/include": set(),
    "client/operation": {*DATA_PLANE, "client/schedule"},
    "client/schedule": PROTOCOL,
    # service-kit: mistakes in a file have one form everywhere
    "client/tuning": {*PROTOCOL, "client/schedule", "service-kit"},
    "client/control": {"protocol", "transport"},
    "client/collectives/in_network": CLIENT_CORE,
    "client/collectives/fallback": CLIENT_CORE,
    "client/collectives/local": CLIENT_CORE,
    "client/collectives/hosts": {*CLIENT_CORE, "client/collectives/local"},
    "client/recovery": {*CLIENT_CORE, *COLLECTIVES},
    "client/communicator": {*CLIENT_CORE, *COLLECTIVES, "client/recovery"},
    "client/gpu": {"protocol", "kernels", "transport", "client/operation"},
    # service-kit: the lines of its log begin like the daemons' lines
    "client/api": {*CLIENT, "client/gpu", "client/include", "service-kit", "tree-manager/api-client"},
    # topology: ranges of host names have one form on the command line and in the topology file; identity: the manager's
    # own keys make tokens; control: the doctor proves a rank's connections
    "client/cli": {"client/cli/free_port", "client/control", "protocol", "kernels", "service-kit", "transport", "client/gpu", "client/include", "client/tuning", "client/schedule", "tree-manager/api-client", "tree-manager/identity", "tree-manager/topology"},
    # the tables that NCCL calls: it loads the plugin as NCCL does; service-kit: the options of all programs look alike
    "client/cli/free_port": {"protocol"},
    "client/cli/nccl_check": {"client/cli/free_port", "client/plugins/nccl/abi", "service-kit"},
    "client/plugins": {"client/include"},
    # transport: the plugin also gives NCCL point-to-point messages, which are not collectives
    # client/control: the two ends of such messages prove themselves like two ranks (see BARRED)
    # client/tuning: the tuner asks the library's own cost model; service-kit: rates have one form everywhere
    "client/plugins/nccl": {"client/include", "client/control", "client/plugins/nccl/abi", "client/schedule", "client/tuning", "protocol", "service-kit", "transport"},
    "client/plugins/nccl/abi": set(),
    "client/plugins/dpdk": {"client/api", "protocol", "service-kit", "transport"},
}

# The form of the layers in an #include: public headers lie under "tributary/".
PUBLIC = {
    "tributary/protocol/": "protocol",
    "tributary/kernels/": "kernels",
    "tributary/transport/": "transport",
    "tributary/manager_client/": "tree-manager/api-client",
    "tributary/tributary.h": "client/include",  # and tributary.hpp
}

# layer: patterns of headers that it must not include, and the reason
BARRED: list[tuple[str, str, str]] = [
    ("aggregator/engine", r"(thread|mutex|shared_mutex|atomic|condition_variable|future|chrono|random|fstream|iostream|filesystem|csignal)$"
                          r"|(sys|netinet|arpa|linux|boost|spdlog)/|(unistd|pthread|fcntl|poll|errno)\.h$",
     "the engine is sans-I/O: no socket, clock, thread, lock or file"),
    ("protocol", r"(thread|mutex|fstream|iostream|filesystem)$|(sys|netinet|arpa|boost|spdlog)/|unistd\.h$", "protocol does no I/O"),
    ("client/include", r"(boost|spdlog|nlohmann|openssl|yaml-cpp|CLI)/", "the public headers need nothing but the standard library"),
    ("aggregator", r"(rte_|infiniband/|rdma/)", "types of a transport stay in its folder"),
    ("client/plugins/nccl", r"client/control/(?!(mutual_proof|unique_id)\.h)", "it may use only the proofs of the ranks' control connections"),
    ("client", r"(rte_|infiniband/|rdma/)", "types of a transport stay in its folder"),
]
# Headers that cost seconds of compile time in every file that sees them; only .cc files may include them.
HEAVY = re.compile(r"^(nlohmann/json\.hpp|boost/(beast|asio)\.hpp|boost/beast/.*)$")
HEAVY_ALLOWED = ("service-kit/http/", "tree-manager/api/", "protocol/src/")  # private headers of one small library

SOURCES = {".h", ".hpp", ".c", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)
FREE = ("tests/", "bench/")


def layer_of(path: str) -> str | None:
    """Returns the longest layer that `path` lies in."""
    within = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(within, key=len, default=None)


def target_of(include: str) -> str | None:
    """Returns the layer that an #include names; None for a file beside the including file, or a library's file."""
    for prefix, layer in PUBLIC.items():
        if include.startswith(prefix):
            return layer
    return layer_of(include)


def complaints(path: str, text: str) -> list[str]:
    """Returns the faults of one file's includes."""
    layer = layer_of(path)
    if layer is None:
        return []
    found = []
    for quote, include in INCLUDE.findall(text):
        target = target_of(include)
        if target is not None and target != layer and target not in LAYERS[layer]:
            found.append(f"{path} includes {include}: {layer} must not depend on {target}")
        if quote == '"' and "../" in include:
            found.append(f"{path} includes {include}: name files from the root of the repository or of a public include folder")
        if path.endswith((".h", ".hpp")) and "-inl" not in path and HEAVY.match(include) and not path.startswith(HEAVY_ALLOWED):
            found.append(f"{path} includes {include}: a heavy header, only for .cc files (nlohmann/json_fwd.hpp has the declarations)")
        for where, pattern, why in BARRED:
            if path.startswith(where + "/") and re.match(pattern, include):
                found.append(f"{path} includes {include}: {why}")
    return found


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Returns the sets of folders in which each folder reaches every other folder by includes."""
    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        open_ends = [start]
        while open_ends:
            for to in edges.get(open_ends.pop(), ()):
                if to not in seen:
                    seen.add(to)
                    open_ends.append(to)
        return seen

    reach = {folder: reached(folder) for folder in edges}
    knots = {tuple(sorted(other for other in reach[folder] if folder in reach.get(other, ()))) for folder in edges}
    return [list(knot) for knot in sorted(knots) if knot]


def edges_of(files: dict[str, str]) -> dict[str, dict[str, str]]:
    """Returns for each folder the folders that its files include, and one such #include for each."""
    public = {path[path.index("/include/tributary/") + len("/include/"):]: path for path in files if "/include/tributary/" in path}
    edges: dict[str, dict[str, str]] = {}
    for path, text in sorted(files.items()):
        folder = path.rpartition("/")[0]
        for _, include in INCLUDE.findall(text):
            target = include if include in files else public.get(include, f"{folder}/{include}")
            if target in files and target.rpartition("/")[0] != folder:
                edges.setdefault(folder, {}).setdefault(target.rpartition("/")[0], f"{path} includes {include}")
    return edges


class Rules(unittest.TestCase):
    """The check detects the faults that it looks for."""

    def bad(self, path: str, include: str) -> None:
        self.assertTrue(complaints(path, f"#include {include}\n"), f"{path} may include {include}")

    def good(self, path: str, include: str) -> None:
        self.assertEqual(complaints(path, f"#include {include}\n"), [])

    def test_dependencies_point_one_way(self) -> None:
        self.good("aggregator/worker/worker.cc", '"tributary/transport/channel.h"')
        self.good("client/api/comm.cc", '"tributary/manager_client/manager_client.h"')
        self.good("tree-manager/planner/tree.cc", '"tributary/protocol/descriptor.h"')
        self.bad("protocol/src/frame.cc", '"tributary/kernels/reduce.h"')
        self.bad("kernels/cpu/reduce.cc", '"tributary/transport/channel.h"')
        self.bad("transport/tcp/tcp_socket.cc", '"client/communicator/communicator.h"')
        self.bad("tree-manager/planner/tree.cc", '"tributary/transport/tcp.h"')
        self.bad("tree-manager/topology/topology.cc", '"tree-manager/service/cluster.h"')
        self.bad("client/communicator/communicator.cc", '"tributary/manager_client/manager_client.h"')
        self.bad("client/communicator/communicator.cc", '"client/api/comm.h"')
        self.bad("aggregator/daemon/settings.cc", '"client/api/settings.h"')
        self.bad("client/plugins/torch/csrc/work.cc", '"client/communicator/communicator.h"')
        self.bad("client/plugins/nccl/collective/group_comm.cc", '"client/communicator/communicator.h"')
        self.bad("client/plugins/nccl/p2p/greeting.h", '"client/control/arrivals.h"')
        self.good("client/plugins/nccl/p2p/greeting.h", '"client/control/mutual_proof.h"')
        self.good("client/plugins/nccl/p2p/engine.h", '"tributary/transport/tcp.h"')
        self.good("client/cli/nccl_check/library.h", '"client/plugins/nccl/abi/net.h"')
        self.bad("client/cli/nccl_check/library.h", '"client/plugins/nccl/p2p/net.h"')

    def test_the_engine_is_without_io(self) -> None:
        self.good("aggregator/engine/lane.cc", "<array>")
        self.bad("aggregator/engine/lane.cc", '"tributary/transport/channel.h"')
        for header in ("<thread>", "<chrono>", "<mutex>", "<sys/socket.h>", "<boost/asio.hpp>"):
            self.bad("aggregator/engine/lane.cc", header)

    def test_circles_are_seen(self) -> None:
        self.assertEqual(circles({"a": {"b", "c"}, "b": {"c"}, "c": {"d"}}), [])
        self.assertEqual(circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}), [["a", "b", "c"], ["d", "e"]])

    def test_includes_of_other_folders_are_seen(self) -> None:
        files = {"p/include/tributary/p/x.h": '#include "a/b/y.h"\n', "a/b/y.h": '#include "a/z.h"\n#include <vector>\n',
                 "a/z.h": '#include "tributary/p/x.h"\n#include "a/none.h"\n', "a/w.cc": '#include "z.h"\n'}
        edges = {folder: set(to) for folder, to in edges_of(files).items()}
        self.assertEqual(edges, {"p/include/tributary/p": {"a/b"}, "a/b": {"a"}, "a": {"p/include/tributary/p"}})
        self.assertEqual(len(circles(edges)), 1)

    def test_heavy_headers_stay_out_of_headers(self) -> None:
        self.good("client/recovery/coordinator.cc", "<nlohmann/json.hpp>")
        self.good("protocol/include/tributary/protocol/descriptor.h", "<nlohmann/json_fwd.hpp>")
        self.bad("protocol/include/tributary/protocol/descriptor.h", "<nlohmann/json.hpp>")


class Repository(unittest.TestCase):
    root = Path()

    def test_protocol_is_told_the_time(self) -> None:
        asks = [path for path in tracked.files(self.root) if path.suffix in SOURCES and path.as_posix().startswith("protocol/")
                and "_clock::now" in (self.root / path).read_text(errors="replace")]
        self.assertEqual(asks, [], "protocol/ does no I/O: it is given the time")

    def test_no_circles(self) -> None:
        """If a folder includes another folder, directly or through other folders, that folder does not include it."""
        files = {path.as_posix(): (self.root / path).read_text(errors="replace")
                 for path in tracked.files(self.root) if path.suffix in SOURCES and not str(path).startswith(FREE)}
        edges = edges_of(files)
        self.assertGreater(len(edges), 20, "no includes found")
        found = circles({folder: set(to) for folder, to in edges.items()})
        told = ["\n".join(edges[a][b] for a in circle for b in edges.get(a, {}) if b in circle) for circle in found]
        self.assertEqual(found, [], "folders that include each other:\n" + "\n\n".join(told))

    def test_includes(self) -> None:
        paths = [path for path in tracked.files(self.root) if path.suffix in SOURCES and not str(path).startswith(FREE)]
        self.assertGreater(len(paths), 50, "no sources found: is this the root of the repository?")
        found = [line for path in paths for line in complaints(path.as_posix(), (self.root / path).read_text(errors="replace"))]
        self.assertEqual(found, [], "\n" + "\n".join(found))


if __name__ == "__main__":
    Repository.root = Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=1)
