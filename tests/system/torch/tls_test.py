"""A training gets its trees from a manager that speaks only HTTPS and takes only identity tokens.

Two ranks train with DistributedDataParallel. They believe the CA that TRIBUTARY_TLS_CA names, and show the token of a
tenant. The aggregator shows a certificate. A rank that believes another CA, or whose token is wrong, trains between the
ranks, and says why.

    tls_test.py            TRIBUTARY_TEST_BUILD is the build
    tls_test.py --rank     one rank
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from collections.abc import Iterator
from pathlib import Path

from ranks import finish

import torch
import torch.distributed as dist
import tributary.torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
STEPS = 20
LIMIT_SECONDS = 120.0
ROOT = Path(__file__).resolve().parents[3]
RECIPE = re.compile(r"^<!-- recipe -->\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
IDENTITIES = '- {subject: "CN=leaf-a,O=aggregators", role: aggregator}\n'


# ---- One rank.


def main_of_rank() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("tributary")
    torch.manual_seed(7)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(64, 300), nn.ReLU(), nn.Linear(300, 10)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    wants_trees = os.environ["WANTS_TREES"] == "1"
    steps, enough = 0, torch.zeros(1)
    # Where trees are wanted, the training ends when they have carried bytes of all ranks.
    while enough.item() == 0:
        optimizer.zero_grad()
        generator = torch.Generator().manual_seed(1000 * steps + dist.get_rank())
        net(torch.randn(16, 64, generator=generator)).square().mean().backward()
        optimizer.step()
        steps += 1
        has_trees = tributary.torch.info()["bytes_in_network"] > 0
        # All ranks must make the same number of steps.
        enough = torch.tensor([float(steps >= STEPS and (has_trees or not wants_trees))])
        dist.all_reduce(enough, op=dist.ReduceOp.MIN)
    same = [torch.empty_like(parameter) for parameter in net.parameters()]
    for copy, parameter in zip(same, net.parameters(), strict=True):
        copy.copy_(parameter.detach())
        dist.broadcast(copy, src=0)
        assert torch.equal(copy, parameter.detach()), "parameters differ between ranks"
    info = tributary.torch.info()
    dist.destroy_process_group()
    if os.environ["RANK"] == "0":
        print(json.dumps({"steps": steps} | info))


# ---- The test.


def shell(script: str, folder: Path) -> None:
    ended = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, script + ended.stderr


def build_of(*parts: str) -> Path:
    return Path(os.environ["TRIBUTARY_TEST_BUILD"], *parts).resolve()


@contextmanager
def daemon(folder: Path, name: str, program: Path, settings: str) -> Iterator[dict]:
    """Runs a daemon of the build; gives the JSON of its ready file."""
    ready = folder / f"{name}.ready"
    (folder / f"{name}.yaml").write_text(settings + f"ready_file: {ready}\n")
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen([program, "--config", folder / f"{name}.yaml"], stdout=subprocess.DEVNULL, stderr=log)
        try:
            end = time.monotonic() + LIMIT_SECONDS
            while not ready.exists():
                assert process.poll() is None and time.monotonic() < end, (folder / f"{name}.log").read_text()
                time.sleep(0.02)
            yield json.loads(ready.read_text())
        finally:
            process.terminate()
            process.wait(LIMIT_SECONDS)


@contextmanager
def service(folder: Path) -> Iterator[str]:
    """Runs a manager and an aggregator over TLS, which believe the CA of docs/security.md; gives the manager's URL."""
    tls = folder / "tls"
    recipes = [recipe for recipe in RECIPE.findall((ROOT / "docs/security.md").read_text()) if "openssl " in recipe]
    shell("\n".join(recipes[:-1]), folder)  # the last one revokes
    shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 10 -subj '/CN=Another CA' "
          "-keyout tls/other.key -out tls/other-ca.pem", folder)
    (folder / "certificates.yaml").write_text(IDENTITIES)
    manager = (f"listen: 127.0.0.1:0\nstate_directory: {folder}/state\ntls_cert: {tls}/manager.pem\ntls_key: {tls}/manager.key\ntls_ca: {tls}/ca.pem\n"
               f"certificate_file: {folder}/certificates.yaml\nreads_need_token: true\nold_secrets: false\n")
    with daemon(folder, "manager", build_of("tree-manager/tributary-manager"), manager) as at:
        url = f"https://localhost:{at['port']}"
        made = subprocess.run([build_of("client/cli/tributary"), "token", "make", "--tenant", "physics", "--life", "1h", "--key-file", folder / "state/identity.keys",
                               "-O", folder / "physics.token"], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        aggregator = (f"name: leaf-a\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nmanager: {url}\nworkers: 1\nstate_file: {folder}/leaf-a.state\n"
                      f"tls_ca: {tls}/ca.pem\ntls_cert: {tls}/leaf-a.pem\ntls_key: {tls}/leaf-a.key\n")
        with daemon(folder, "leaf-a", build_of("aggregator/tributary-aggregator"), aggregator):
            yield url


def train(folder: Path, url: str, wants_trees: bool, **more: str) -> tuple[dict, str]:
    """Returns what rank 0 says of its path, and the ranks' log."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TRIBUTARY_")}
    variables |= {"TRIBUTARY_MANAGER": url, "TRIBUTARY_TLS_CA": str(folder / "tls/ca.pem"), "TRIBUTARY_TOKEN_FILE": str(folder / "physics.token"),
                  "TRIBUTARY_LOCAL": "off", "TRIBUTARY_TUNING": "off", "TRIBUTARY_JOB": "training", "TRIBUTARY_LOG": "info", "OMP_NUM_THREADS": "1",
                  "WANTS_TREES": str(int(wants_trees))} | more
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS), __file__, "--rank"]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=2 * LIMIT_SECONDS, check=False)
    lines = [line[line.index("{") :] for line in ended.stdout.splitlines() if '"steps"' in line]
    assert ended.returncode == 0 and lines, f"{ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return json.loads(lines[0]), ended.stderr


def report(name: str, problem: str) -> tuple[int, int]:
    print(f"FAILED  {name}: {problem}" if problem else f"ok      {name}", flush=True)
    return int(not problem), int(bool(problem))


def check_all(folder: Path) -> Iterator[tuple[int, int]]:
    with service(folder) as url:
        info, log = train(folder, url, wants_trees=True)
        yield report("trees of a manager over HTTPS", "" if info["bytes_in_network"] > 0 else f"no byte went in-network: {info}\n{log}")
        info, log = train(folder, url, wants_trees=False, TRIBUTARY_TLS_CA=str(folder / "tls/other-ca.pem"))
        refused = info["bytes_in_network"] == 0 and info["bytes_fallback"] > 0
        yield report("a rank that believes another CA trains between the ranks", "" if refused else str(info))
        yield report("its log names the CA", "" if "which is no CA in" in log else log)
        (folder / "wrong.token").write_text("ti1.wrong\n")
        info, log = train(folder, url, wants_trees=False, TRIBUTARY_TOKEN_FILE=str(folder / "wrong.token"))
        refused = info["bytes_in_network"] == 0 and info["bytes_fallback"] > 0
        yield report("a rank with a wrong token trains between the ranks", "" if refused else f"{info}\n{log}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        finish(check_all(Path(folder)))


if __name__ == "__main__":
    main_of_rank() if "--rank" in sys.argv else main()
