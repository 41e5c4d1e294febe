"""SLURM of Debian (`slurm-wlm`) for a test: munged, slurmctld and slurmd of its own, in folders of its own, on this machine."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
_PATIENCE_S = 120.0

_CONFIG = """
ClusterName=farlink
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,batch_sched_delay=1
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MessageTimeout=60
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why SLURM cannot be started here; empty if it can."""
    if os.geteuid() != 0:
        return "SLURM's daemons need root"
    lacking = [name for name in NEEDED if shutil.which(name, path=_path()) is None]
    return f"{', '.join(lacking)} missing: apt-get install slurm-wlm munge" if lacking else ""


class Slurm:
    """A cluster of one node.

    Parameters
    ----------
    environment
        For the commands of SLURM, and of the jobs that they start.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def command(self, *command: str, cwd: Path | None = None) -> str:
        """What a command such as `sbatch` prints."""
        done = subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=_PATIENCE_S)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def submit(self, script: Path) -> str:
        """Submit a job in the folder of its script; its number."""
        return self.command("sbatch", "--parsable", script.name, cwd=script.parent).strip().partition(";")[0]

    def waits(self) -> list[str]:
        """Tasks that wait, run or end, each with its state."""
        return self.command("squeue", "--noheader", "--array", "--format=%i %T").splitlines()


@contextmanager
def cluster(folder: Path, path: str) -> Iterator[Slurm]:
    """A cluster that ends with the block.

    Parameters
    ----------
    folder
        For sockets, states and logs.
    path
        Put in front of the jobs' PATH.
    """
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    (folder / "slurm.conf").write_text(_CONFIG.format(host=host, ports=_free_ports(), folder=folder))
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{_path()}", "SLURM_CONF": str(folder / "slurm.conf")}
    munge = ["munged", "--foreground", "--force", "--num-threads=2", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munge += [f"--{name}-file={folder}/munge.{name}" for name in ("log", "pid", "seed")]
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        output = (folder / f"{command[0]}.out").open("wb")
        with output:
            started.append(subprocess.Popen(command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT))

    try:
        start(*munge)
        _wait(folder, (folder / "munge.socket").exists)
        start("slurmctld", "-D", "-i")
        start("slurmd", "-D", "-N", host)
        slurm = Slurm(environment)
        _wait(folder, lambda: _is_idle(environment))
        yield slurm
        subprocess.run(["scancel", "--full", "--user=root"], env=environment, capture_output=True, timeout=_PATIENCE_S)
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_idle(environment: dict[str, str]) -> bool:
    found = subprocess.run(["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True)
    return found.stdout.strip() == "idle"


def _wait(folder: Path, condition: object) -> None:
    until = time.monotonic() + _PATIENCE_S
    assert callable(condition)
    while not condition():
        if time.monotonic() > until:
            said = "\n".join(
                f"{log.name}: {log.read_text(errors='replace')[-500:]}" for log in sorted(folder.glob("*.[lo][ou][gt]"))
            )
            raise AssertionError(f"SLURM does not begin:\n{said}")
        time.sleep(0.2)


def _free_ports() -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _path() -> str:
    """Daemons lie where users do not look."""
    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
