#!/usr/bin/env python3
"""In the steady state no operation makes a system call, and no processor copies a large payload.

    steady_state_test.py STEADY_STATE      the program; run under strace

The device's own library hands over work requests: soft-RoCE's library writes to its device for each list; other
libraries write to the device's memory. So the test allows such writes, at most one for each list. To read the clock is
a system call only on machines without a faster way (virtual machines).
"""

import collections
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OPERATIONS = 200


def main() -> int:
    if not shutil.which("strace"):
        print("strace is not installed (scripts/setup --rdma)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        ran = subprocess.run(["strace", "-y", "-o", str(trace), sys.argv[1], str(OPERATIONS)], capture_output=True, text=True, check=False)
        print(ran.stdout + ran.stderr)
        if ran.returncode != 0:
            return 1
        calls = trace.read_text(errors="replace").splitlines()
    marks = [number for number, call in enumerate(calls) if call.startswith("getppid(")]
    if len(marks) != 2:
        print(f"getppid() was seen {len(marks)} times instead of twice")
        return 1
    told = {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", ran.stdout)}
    counts: collections.Counter[str] = collections.Counter()
    for call in calls[marks[0] + 1 : marks[1]]:
        name = call.split("(", 1)[0]
        if name == "clock_gettime" or call.startswith("---"):
            continue
        counts["doorbell" if name in ("write", "ioctl") and "/dev/infiniband/uverbs" in call else name] += 1
    print("system calls:", dict(counts))
    wrong = []
    if counts.pop("doorbell", 0) > told["posts"]:
        wrong.append("the device's library was called more often than work was posted")
    if counts:
        wrong.append(f"system calls in the steady state: {dict(counts)}")
    if told["sleeps"] or told["registrations"]:
        wrong.append("it slept, or registered memory")
    if told["written"] != OPERATIONS * 65536 or told["copied"] != told["small"]:
        wrong.append("a large payload was copied, or not written straight to its place")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
