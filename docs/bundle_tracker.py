"""OpenMPTCProuter's script that watches lines, `omr-tracker`, run on Debian beside an operator.

The script is GPL and is not shipped. It is run as it is, but for the paths of what it reads. OpenWrt's commands that it calls
are replaced by stubs: they tell what they would tell of an interface that is up while it has a carrier.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from types import TracebackType

from tests.operator.wires import Wire

# The defaults of its configuration, `omr-tracker/files/etc/config/omr-tracker`; sizes and TTL are those of its init script.
DEFAULTS = {
    "TIMEOUT": "2",
    "COUNT": "2",
    "TRIES": "3",
    "TRIES_UP": "5",
    "INTERVAL": "2",
    "INTERVAL_TRIES": "1",
    "FAILURE_INTERVAL": "20",
    "RELIABILITY": "1",
    "TYPE": "ping",
    "FAMILY": "ipv4",
    "IPV6": "0",
    "SIZE": "56",
    "MAX_TTL": "60",
    "CHECK_QUALITY": "0",
    "WAIT_TEST": "0",
    "SERVER_HTTP_TEST": "0",
    "SERVER_TEST": "0",
}
_PATIENCE_S = 120.0
_POLL_S = 0.02

_STUBS = {
    "uci": "exit 1",
    "ubus": "echo '{}'",
    "logger": "exit 0",
    "resolveip": 'echo "${@: -1}"',
    "jsonfilter": r"""
query="${@: -1}"; query="${query#@}"
exec jq -r "$(printf '%s' "$query" | sed -e 's/^\[\*\]/.[]/' -e 's/^\["/."/' -e 's/"\]$/"/') // empty"
""",
    "ifstatus": r"""
read -r carrier < "/sys/class/net/$1/carrier" 2> /dev/null && [ "$carrier" = 1 ] && up=true || up=false
printf '{"up": %s, "l3_device": "%s", "device": "%s"}' "$up" "$1" "$1"
""",
}
_FUNCTIONS = "config_load() { :; }; config_foreach() { :; }; config_get() { :; }; config_list_foreach() { :; }\n"
_NETWORK = "network_get_physdev() { :; }; network_get_device() { :; }\n"
_NOTE = '#!/bin/bash\nprintf "%s %s\\n" "$(date +%s.%N)" "$OMR_TRACKER_STATUS" >> "$OMR_NOTES"\n'


class Tracker:
    """The script, which watches one wire; a context manager.

    Parameters
    ----------
    script
        `omr-tracker/files/bin/omr-tracker` of OpenMPTCProuter's feeds.
    folder
        For its stubs, and for what it says.
    wire
        What it watches.
    """

    def __init__(self, script: Path, folder: Path, wire: Wire) -> None:
        self._notes = folder / "notes"
        self._notes.touch()
        programs, after, run = folder / "bin", folder / "post-tracking.d", folder / "omr-tracker"
        for one in (programs, after):
            one.mkdir()
        for name, text in _STUBS.items():
            _program(programs / name, f"#!/bin/bash\n{text}\n")
        _program(after / "note", _NOTE)
        for name, text in (("functions.sh", _FUNCTIONS), ("iptools.sh", ""), ("network.sh", _NETWORK)):
            (folder / name).write_text(text)
        text = script.read_text(encoding="utf-8")
        for path in ("/lib/functions/network.sh", "/lib/functions.sh", "/usr/lib/unbound/iptools.sh"):
            text = re.sub(rf"^\. {path}$", f". {folder / Path(path).name}", text, count=1, flags=re.MULTILINE)
        _program(run, text.replace("/usr/share/omr/post-tracking.d", str(after)))
        settings = {f"OMR_TRACKER_{key}": value for key, value in DEFAULTS.items()}
        settings |= {"OMR_TRACKER_HOSTS": wire.target, "OMR_TRACKER_DEVICE": wire.name, "OMR_NOTES": str(self._notes)}
        settings["PATH"] = f"{programs}:{os.environ['PATH']}"
        command = [*wire.prefix_near(), "env", *(f"{key}={value}" for key, value in settings.items()), "bash", run, wire.name]
        self._said = (folder / "said").open("wb")
        self._process = subprocess.Popen(command, stdout=self._said, stderr=self._said, start_new_session=True)

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End it, with what it has started."""
        subprocess.run(["kill", "-KILL", "--", f"-{self._process.pid}"], check=False)
        self._process.wait()
        self._said.close()

    def since(self, began_s: float, status: str) -> float:
        """Wait until it has said a status after a time, in s since 1970; how long after, in s."""
        until_s = time.time() + _PATIENCE_S
        while time.time() < until_s:
            for line in self._notes.read_text(encoding="ascii").splitlines():
                at, said = line.split()
                if float(at) >= began_s and said == status:
                    return float(at) - began_s
            time.sleep(_POLL_S)
        said = Path(self._said.name).read_text(errors="replace")[-2000:]
        raise RuntimeError(f"the tracker has not said {status} for {_PATIENCE_S:g} s: {shlex.quote(said)}")


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
