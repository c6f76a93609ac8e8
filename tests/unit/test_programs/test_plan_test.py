"""Checks that tests which scripts/test joins from several builds run in the same environment as those of one build.

    python3 test_plan_test.py REPOSITORY
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

repository = Path(sys.argv[1])
program = repository / "scripts/lib-test-plan"
wanted = dict(re.findall(r"set\(ENV\{(\w+)\} (\S+)\)", (repository / "tests/environment.cmake").read_text()))
if not wanted:
    raise SystemExit("tests/environment.cmake sets no variable")
with tempfile.TemporaryDirectory() as folder:
    plan = f"{folder}/plan.json"
    checks = " && ".join(f'test "${name}" = "{value}"' for name, value in wanted.items())
    subprocess.run([program, "command", plan, "environment", "--label", "unit", "--", "sh", "-c", checks], check=True)
    subprocess.run([program, "write", plan, folder], check=True)
    done = subprocess.run(["env", *(f"--unset={name}" for name in wanted), "ctest", "--test-dir", folder, "--output-on-failure"], check=False)
sys.exit(done.returncode)
