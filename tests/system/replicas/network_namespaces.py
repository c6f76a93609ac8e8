"""The condition of tests that run managers and etcd on machines of their own: network namespaces."""

import os
import shutil
import subprocess
import sys

SKIPPED = 77


def skip_without() -> None:
    """Ends the process as skipped, with the reason, if it cannot make network namespaces or has no etcd."""
    if os.geteuid() != 0 or not os.access("/usr/bin/etcd", os.X_OK) or shutil.which("ip") is None or shutil.which("curl") is None:
        print("skipped: only root makes network namespaces, and etcd, ip and curl must be there")
        sys.exit(SKIPPED)
    name = f"tp{os.getpid() % 10000}x"
    if subprocess.run(("ip", "netns", "add", name), check=False, capture_output=True).returncode != 0:
        print("skipped: this machine makes no network namespaces")
        sys.exit(SKIPPED)
    subprocess.run(("ip", "netns", "del", name), check=False)
