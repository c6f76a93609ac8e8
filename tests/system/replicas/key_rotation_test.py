#!/usr/bin/env python3
"""Three managers change the job token and the signing key together, and none of them restarts.

    key_rotation_test.py REPOSITORY BUILD

Etcd is real: three members on loopback.
"""

import http.client
import json
import signal
import sys
import time
import unittest
from pathlib import Path

from managers_over_etcd import LIMIT_SECONDS, ManagersOverEtcd, get, has_etcd

SETTLED_SECONDS = 2  # longer than a manager that follows needs to take over what has changed
NEW_KEY = "5" * 63 + "a"
NEW_TOKEN = "j" * 64


class KeyRotation(ManagersOverEtcd):
    def change(self, name: str, file: str, text: str) -> None:
        """Writes a file of a manager's state directory, and sends SIGHUP to the manager."""
        (self.folder / f"state{name[1:]}" / file).write_text(text + "\n")
        self.processes[name].send_signal(signal.SIGHUP)

    def public_keys(self) -> set[str]:
        """Returns the keys that the managers name."""
        answers = [get(port, "/v1/public-key") for port in self.ports.values()]
        return {json.loads(body)["public_key"] for status, _, body in answers if status == 200}

    def ask_for_group(self, port: int, token: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        try:
            connection.request("POST", "/v1/groups", json.dumps({"job": "j", "ranks": ["a", "b"]}), {"Authorization": f"Bearer {token}"})
            return connection.getresponse().status
        finally:
            connection.close()

    def test_the_job_token_of_the_leader_reaches_all_managers(self) -> None:
        old = (self.folder / "state0/job.token").read_text().strip()
        self.change("m0", "job.token", NEW_TOKEN)
        for name, port in self.ports.items():
            self.wait_until(lambda port=port: self.ask_for_group(port, NEW_TOKEN) == 200, f"{name} does not know the new token")
            self.assertEqual(self.ask_for_group(port, old), 401, name)
            # A follower that does not know the token yet passes the request on to the leader, which does.
            file = self.folder / f"state{name[1:]}/job.token"
            self.wait_until(lambda file=file: file.read_text().strip() == NEW_TOKEN, f"{name} does not keep the new token")

    def test_the_signing_key_changes_when_the_leader_changes_it(self) -> None:
        token = (self.folder / "state0/job.token").read_text().strip()
        before = self.public_keys()
        self.assertEqual(len(before), 1)
        self.change("m1", "signing.key", NEW_KEY)
        time.sleep(SETTLED_SECONDS)
        self.assertEqual(self.public_keys(), before, "the leader has the old key")
        self.change("m0", "signing.key", NEW_KEY)
        self.wait_until(lambda: self.public_keys() != before, lambda: f"the leader does not change the key\n{self.logs()}")
        after = self.public_keys()
        self.assertEqual(len(after), 1)
        self.assertIn("the managers sign with another key", (self.folder / "m0.log").read_text())
        self.wait_until(lambda: "uses the new signing key" in (self.folder / "m1.log").read_text(), "m1 does not use the new key")
        self.wait_until(lambda: "another signing.key" in (self.folder / "m2.log").read_text(), "m2 has no new key, and does not say so")
        self.assertEqual((self.folder / "m2.log").read_text().count("another signing.key"), 1, "it says so once")
        for port in self.ports.values():
            self.assertEqual(self.ask_for_group(port, token), 200)
        self.change("m2", "signing.key", NEW_KEY)
        self.wait_until(lambda: "uses the new signing key" in (self.folder / "m2.log").read_text(), "m2 does not use the new key")
        self.processes["m0"].kill()
        self.processes["m0"].wait(timeout=LIMIT_SECONDS)
        del self.ports["m0"]
        self.wait_until(self.leader, "no manager that has followed can lead")
        self.wait_until(lambda: self.public_keys() == after, lambda: f"the next leader has another key: {self.public_keys()}")
        for port in self.ports.values():
            self.wait_until(lambda port=port: self.ask_for_group(port, token) == 200, "no group is made")
        self.ports["m0"] = self.run_manager(0)
        self.wait_until(lambda: self.ask_for_group(self.ports["m0"], token) == 200, "the manager that starts with the new key does not serve")


if __name__ == "__main__":
    if not has_etcd():
        print("skipped: etcd is missing (scripts/setup --etcd)")
        sys.exit(77)
    KeyRotation.root, KeyRotation.build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    del sys.argv[1:3]
    unittest.main(verbosity=1)
