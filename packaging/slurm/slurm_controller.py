"""The settings of the programs for PrologSlurmctld and EpilogSlurmctld, and their calls to the manager.

Slurm sets SLURM_JOB_ID and SLURM_JOB_UID, and the plugin has named the job's groups after the former.
/etc/tributary/slurm.conf names the manager and the token. A program waits no longer than 5 seconds, and reports what it
could not do to the system's log.
"""

import json
import os
import pwd
import signal
import ssl
import sys
import syslog
import urllib.request
from collections.abc import Callable
from pathlib import Path

SETTINGS = Path("/etc/tributary/slurm.conf")
WAIT_S = 5


def settings() -> dict[str, str]:
    found = {"manager": "", "tls_ca": "", "token_file": "/etc/tributary/job.token", "job_token_life": "", "reservation_max": ""}
    for line in SETTINGS.read_text().splitlines():
        key, equals, value = line.partition("#")[0].partition("=")
        if equals:
            found[key.strip()] = value.strip()
    return found


def opener(tls_ca: str) -> urllib.request.OpenerDirector:
    """Returns the object that opens URLs: without a proxy, as the manager is on the cluster's network, and with only this CA."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if tls_ca:
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trust.load_verify_locations(tls_ca)
        handlers.append(urllib.request.HTTPSHandler(context=trust))
    return urllib.request.build_opener(*handlers)


def call(found: dict[str, str], token: str, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    url = found["manager"].rstrip("/") + path
    request = urllib.request.Request(url, data, {"Authorization": f"Bearer {token}"}, method=method)
    with opener(found["tls_ca"]).open(request, timeout=WAIT_S) as answer:
        return json.load(answer)


def tenant() -> str:
    """Returns the name under which the plugin's tokens make groups for the job's user."""
    user = int(os.environ.get("SLURM_JOB_UID", "0"))
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user-{user}"


def own_token(found: dict[str, str]) -> str:
    """Returns the controller's token: the job token, or the token of an operator."""
    return Path(found["token_file"]).read_text().strip()


def proof(found: dict[str, str], job: str) -> str:
    """Returns the job token, or, where jobs have tokens of their own, a token for this job's groups."""
    token = own_token(found)
    if not found["job_token_life"]:
        return token
    wanted = {"role": "tenant", "tenant": tenant(), "job": job, "name": "slurm-epilog", "life_seconds": 60}
    return str(call(found, token, "POST", "/v1/tokens", wanted)["token"])


def too_late(*_: object) -> None:
    raise TimeoutError(f"no answer within {WAIT_S} s")


def run(program: str, act: Callable[[str], str], otherwise: str) -> bool:
    """Calls `act` with the job's name, and writes the sentence that it returns to the system's log.

    If it fails, writes `otherwise` with the reason, and returns False.
    """
    job = f"slurm-{os.environ.get('SLURM_JOB_ID', '')}"
    syslog.openlog(program)
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(WAIT_S)
    try:
        done = act(job)
    except (OSError, ValueError, KeyError) as error:
        said = f"{job}: {otherwise}: {error}"
        print(f"tributary: {said}", file=sys.stderr)
        syslog.syslog(syslog.LOG_WARNING, said)
        return False
    if done:
        syslog.syslog(syslog.LOG_INFO, f"{job}: {done}")
    return True
