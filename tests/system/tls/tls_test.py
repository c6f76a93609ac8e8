#!/usr/bin/env python3
"""HTTPS between real processes, with certificates that the commands in docs/security.md make.

    tls_test.py REPOSITORY BUILD

curl and openssl stand for clients that are not ours, and `openssl s_server` for managers that have wrong certificates.
"""

import re
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from daemons import LIMIT_SECONDS, Daemons  # noqa: E402: the line above finds it
from free_ports import free_port  # noqa: E402

SKIPPED = 77
RECIPE = re.compile(r"^<!-- recipe -->\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
IDENTITIES = """
- {subject: "CN=leaf-a,O=aggregators", role: aggregator}
- {subject: "CN=alice,O=physics", role: tenant, tenant: physics}
- {subject: "CN=root", role: administrator}
"""


class Tls(Daemons):
    def setUp(self) -> None:
        super().setUp()
        self.tls = self.folder / "tls"
        self.ca = str(self.tls / "ca.pem")
        page = (self.root / "docs/security.md").read_text()
        *self.make, self.revoke = [recipe for recipe in RECIPE.findall(page) if "openssl " in recipe]
        self.shell("\n".join(self.make))

    def shell(self, script: str) -> None:
        ended = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, script + ended.stderr)

    def issue(self, name: str, subject: str, names: str = "", more: str = "", config: str = "tls/ca.cnf") -> None:
        extension = f'-addext "subjectAltName={names}"' if names else ""
        self.shell(f'openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "{subject}" {extension} '
                   f"-keyout tls/{name}.key -out tls/{name}.csr\n"
                   f"openssl ca -batch -config {config} -create_serial -notext {more} -in tls/{name}.csr -out tls/{name}.pem")

    def foreign(self, name: str, subject: str, names: str) -> None:
        """Issues a certificate that signs itself."""
        self.shell(f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 10 -subj '{subject}' "
                   f"-addext 'subjectAltName={names}' -keyout tls/{name}.key -out tls/{name}.pem")

    def start_manager(self, more: str = "") -> str:
        (self.folder / "certificates.yaml").write_text(IDENTITIES)
        ready = self.start("manager", "tree-manager/tributary-manager",
                           f"listen: 127.0.0.1:0\nstate_directory: {self.folder}/state\ntls_cert: {self.tls}/manager.pem\ntls_key: {self.tls}/manager.key\n"
                           f"tls_ca: {self.ca}\ntls_crl: {self.tls}/crl.pem\ncertificate_file: {self.folder}/certificates.yaml\n{more}")
        self.port = ready["port"]
        return f"https://localhost:{self.port}"

    def curl(self, url: str, *arguments: str) -> tuple[int, str]:
        """Returns curl's exit code and what it printed: the status of the answer at the end."""
        ended = subprocess.run(["curl", "--silent", "--show-error", "--max-time", str(LIMIT_SECONDS), "--write-out", "%{http_code}", "--cacert", self.ca, *arguments, url],
                               capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def shown(self, name: str) -> tuple[str, ...]:
        return ("--cert", str(self.tls / f"{name}.pem"), "--key", str(self.tls / f"{name}.key"))

    def client(self, *arguments: str) -> str:
        ended = subprocess.run(["openssl", "s_client", "-connect", f"localhost:{self.port}", "-CAfile", self.ca, *arguments], input="", capture_output=True,
                               text=True, check=False, timeout=LIMIT_SECONDS)
        return ended.stdout + ended.stderr

    def environment(self, url: str = "", **more: str) -> dict[str, str]:
        return super().environment(**{"TRIBUTARY_MANAGER": url, "TRIBUTARY_TLS_CA": self.ca} | more)

    def test_versions_ciphers_and_plain_http(self) -> None:
        url = self.start_manager()
        for version, good in (("-tls1_3", True), ("-tls1_2", False), ("-tls1_1", False)):
            said = self.client(version, "-cipher", "ALL:@SECLEVEL=0")
            self.assertEqual("Verification: OK" in said and "New, TLSv1.3" in said, good, said)
        for cipher in ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"):
            self.assertIn(f"New, TLSv1.3, Cipher is {cipher}", self.client("-ciphersuites", cipher))
        self.assertIn("handshake failure", self.client("-ciphersuites", "TLS_AES_128_CCM_SHA256"))
        code, said = self.curl(url.replace("https", "http") + "/v1/version")
        self.assertEqual((code, said[-3:]), (0, "400"), said)
        self.assertIn("write https://", said)
        for path, text in (("/", "<html"), ("/metrics", "tributary_manager_tls_handshakes_failed_total"), ("/healthz", "ok")):
            code, said = self.curl(url + path)
            self.assertEqual((code, said[-3:]), (0, "200"), said)
            self.assertIn(text, said)

    def test_clients_with_good_and_wrong_certificates(self) -> None:
        self.issue("late", "/CN=late", more="-startdate 20200101000000Z -enddate 20210101000000Z")
        self.issue("early", "/CN=early", more="-startdate 21000101000000Z -enddate 21010101000000Z")
        self.issue("root", "/CN=root")
        self.issue("unknown", "/CN=unknown")
        self.foreign("stranger", "/O=physics/CN=alice", "DNS:alice")
        url = self.start_manager()
        group = ("--data", '{"job": "j", "ranks": ["a", "b"]}', "--header", "Content-Type: application/json")
        for name, status in (("alice", "200"), ("root", "403"), ("leaf-a", "403"), ("unknown", "401")):
            code, said = self.curl(url + "/v1/groups", *group, *self.shown(name))
            self.assertEqual((code, said[-3:]), (0, status), said)
        for name, alert in (("late", "certificate expired"), ("early", "bad certificate"), ("stranger", "unknown ca")):
            code, said = self.curl(url + "/v1/groups", *group, *self.shown(name))
            self.assertNotEqual(code, 0)
            self.assertIn(alert, said)
        self.shell(self.revoke)
        self.wait_until(lambda: "certificate revoked" in self.curl(url + "/v1/groups", *group, *self.shown("alice"))[1], "the list is not read")
        said = self.tributary("groups", url=url, TRIBUTARY_TLS_CERT=str(self.tls / "stranger.pem"), TRIBUTARY_TLS_KEY=str(self.tls / "stranger.key"))
        self.assertIn("the other side does not believe", said.stderr)

    def test_our_client_refuses_wrong_servers(self) -> None:
        self.issue("late", "/CN=late", "DNS:localhost", "-startdate 20200101000000Z -enddate 20210101000000Z")
        self.issue("early", "/CN=early", "DNS:localhost", "-startdate 21000101000000Z -enddate 21010101000000Z")
        self.issue("other", "/CN=localhost", "DNS:other")
        self.issue("revoked", "/CN=revoked", "DNS:localhost")
        self.shell("openssl ca -config tls/ca.cnf -revoke tls/revoked.pem; openssl ca -config tls/ca.cnf -gencrl -out tls/crl.pem")
        self.foreign("stranger", "/CN=localhost", "DNS:localhost")
        for name, words in (("late", "'CN=late' has expired on 2021-01-01"), ("early", "'CN=early' is not valid before 2100-01-01"),
                            ("other", "is for DNS:other, and not for 'localhost'"), ("revoked", "was revoked, says"),
                            ("stranger", "comes from 'CN=localhost', which is no CA in")):
            port = free_port()
            server = subprocess.Popen(["openssl", "s_server", "-accept", str(port), "-cert", self.tls / f"{name}.pem", "-key", self.tls / f"{name}.key", "-www"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                said = ""

                def answered() -> bool:
                    nonlocal said
                    said = self.tributary("status", url=f"https://localhost:{port}", TRIBUTARY_TLS_CRL=str(self.tls / "crl.pem")).stderr
                    return "refused" not in said

                self.wait_until(answered, "openssl s_server does not serve")
                self.assertIn(words, said)
            finally:
                server.kill()
                server.wait()

    def test_files_change_under_load(self) -> None:
        url = self.start_manager()
        token = str(self.folder / "state/job.token")
        failures: list[str] = []
        ended = threading.Event()

        def load() -> None:
            while not ended.is_set():
                code, said = self.curl(url + "/v1/version")
                if code != 0:
                    failures.append(said)

        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(3):
            self.issue("next", f"/CN=manager-{number}", "DNS:localhost")
            for ending in ("key", "pem"):
                (self.tls / f"next.{ending}").rename(self.tls / f"manager.{ending}")
            self.wait_until(lambda number=number: f"subject=CN = manager-{number}" in self.client(), "the new certificate is not shown")
        ended.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.tributary("status", url=url, TRIBUTARY_TOKEN_FILE=token).returncode, 0)

    def test_a_job_over_https(self) -> None:
        url = self.start_manager("old_secrets: false\nreads_need_token: true\n")
        leaf = (f"manager: {url}\nname: leaf-a\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nworkers: 1\nmemory: 256MiB\nstate_file: {self.folder}/key\n"
                f"tls_ca: {self.ca}\ntls_cert: {self.tls}/leaf-a.pem\ntls_key: {self.tls}/leaf-a.key\ntls_crl: {self.tls}/crl.pem\n")
        ready = self.start("leaf", "aggregator/tributary-aggregator", leaf)
        alice = {"TRIBUTARY_TLS_CERT": str(self.tls / "alice.pem"), "TRIBUTARY_TLS_KEY": str(self.tls / "alice.key")}
        self.wait_until(lambda: "leaf-a" in self.tributary("aggregators", url=url, **alice).stdout, "the aggregator does not register")
        status = int(re.search(r":(\d+)", str(ready["http"]))[1]) if not isinstance(ready["http"], dict) else ready["http"]["port"]
        code, said = self.curl(f"https://127.0.0.1:{status}/metrics")
        self.assertIn("tributary_aggregator_manager_registered 1", said)
        port = free_port()
        ranks = []
        for rank in range(2):
            environment = self.environment(url, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TRIBUTARY_LOCAL="off",
                                           TRIBUTARY_REQUIRE="in-network", TRIBUTARY_TUNING="off", TRIBUTARY_TIMEOUT="30",
                                           **alice)
            ranks.append(subprocess.Popen([self.build / "client/cli/tributary", "perf", "all_reduce", "-b", "64K", "-e", "64K"], env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for rank in ranks:
            out, errors = rank.communicate(timeout=LIMIT_SECONDS)
            self.assertEqual(rank.returncode, 0, out + errors)
        code, said = self.curl(f"https://127.0.0.1:{status}/metrics")
        carried = re.search(r"^tributary_aggregator_contribution_bytes_total(?:\{[^}]*\})? (\S+)", said, re.MULTILINE)
        self.assertIsNotNone(carried, said)
        self.assertGreater(float(carried[1]), 65536, "the job has used the aggregator")


if __name__ == "__main__":
    if shutil.which("curl") is None or shutil.which("openssl") is None:
        print("skipped: curl or openssl is missing")
        sys.exit(SKIPPED)
    Tls.root, Tls.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:]
    unittest.main(verbosity=1)
