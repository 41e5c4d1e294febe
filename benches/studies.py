"""Studies in a folder: what kills cost, whether bytes stay the same, what a coordinator needs; local workers and Dask.

Usage:  python benches/studies.py [kills] [points] [dask] [--runs 10000] [--run-s 0.1] [--points 100000]

`kills`: runs of so much CPU time on two workers; at 30 % of the units one worker is killed, at 60 % the coordinator. The same
command goes on, and its result is compared, byte for byte, with that of one process (`farlink run`). `points`: CPU time of a
coordinator for each point of a large grid, and its peak memory. `dask`: a scheduler and two workers, of which one is killed.

Prints Markdown tables. Where the machine is busy, CPU times hold and wall times do not: its load is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import farlink
from farlink import study as studies
from farlink.build import described
from farlink.study.store import Store

FARLINK = [sys.executable, "-m", "farlink.cli"]
PATIENCE_S = 7200.0
QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def scenario(duration_s: float, runs: int) -> dict[str, Any]:
    """TCP with losses over a path of 10 Mb/s, at four points."""
    return {
        "title": "runs of some CPU time",
        "duration_s": duration_s,
        "runs": runs // 4,
        "link": {"rate_bps": 1e7, "delay_s": 0.05, "channel": {"kind": "loss", "loss": 0.001}},
        "transport": {"tcp": {"kind": "tcp"}},
        "flow": {"bulk": {"transport": "tcp", "traffic": {"kind": "bulk"}}},
        "grid": {"link.channel.loss": [1e-4, 3e-4, 1e-3, 3e-3]},
    }


def calibrated(run_s: float, runs: int) -> dict[str, Any]:
    """The same with runs that take about so much CPU time."""
    duration_s, tried = 20.0, 8
    for _ in range(2):
        begin = time.process_time()
        farlink.run(scenario(duration_s, 4 * tried), threads=1)
        duration_s = max(1.0, round(duration_s * run_s * 4 * tried / (time.process_time() - begin), 1))
    return scenario(duration_s, runs)


def toml(data: dict[str, Any]) -> str:
    """As a scenario file."""
    import tomli_w

    return tomli_w.dumps(data)


def kills(folder: Path, runs: int, run_s: float) -> None:
    """A worker and the coordinator are killed; the result is that of one process."""
    (folder / "study.toml").write_text(toml(calibrated(run_s, runs)))
    sweep = [*FARLINK, "sweep", "study.toml", "-o", "out", "--workers", "2"]
    # Beside the study: where others use the machine, three processes get more of it than two.
    whole = subprocess.Popen([*FARLINK, "run", "study.toml", "--threads", "1", "--parquet", "run.parquet"], cwd=folder, **QUIET)
    coordinator = subprocess.Popen(sweep, cwd=folder)
    store = Store(folder / "out")
    wait_for(store.description_path.exists)
    total = sum(1 for _ in studies.open(folder / "out").plan.planned())
    wait_for(lambda: len(store.finished()) >= 0.3 * total)
    worker = min(int(path.stem.rpartition("-")[2]) for path in (folder / "out" / "workers").glob("*.log"))
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: len(store.finished()) >= 0.6 * total)
    coordinator.kill()
    coordinator.wait()
    at_kill = len(store.finished())
    subprocess.run(sweep, cwd=folder, check=True)
    print(f"studies: resumed and done at {time.strftime('%X')}", file=sys.stderr)
    _, status, used = os.wait4(whole.pid, 0)
    whole_cpu = used.ru_utime + used.ru_stime
    executed = sum(1 for _ in store.executed())
    again_cpu, again_s, said = timed(sweep, folder)
    result_cpu, result_s, _ = timed([*FARLINK, "sweep", "result", "out", "--parquet", "out.parquet"], folder)
    same = status == 0 and (folder / "out.parquet").read_bytes() == (folder / "run.parquet").read_bytes()
    data = json.loads(store.description_path.read_text())
    rows = [
        ("runs, of CPU s each", f"{runs}, {whole_cpu / runs:.3g}"),
        ("units, of runs each", f"{total}, {data['runs_per_unit']}"),
        ("units done when the coordinator was killed", at_kill),
        ("units executed in all", executed),
        ("rows equal to those of one process, byte for byte", "yes" if same else "NO"),
        ("started again: units executed", said.split(" units", 1)[0]),
        ("started again: CPU s, wall s", f"{again_cpu:.2f}, {again_s:.1f}"),
        ("`sweep result`: CPU s, wall s", f"{result_cpu:.2f}, {result_s:.1f}"),
        ("one process: CPU s", f"{whole_cpu:.0f}"),
        ("units: CPU s", f"{sum(one['cpu_s'] for one in store.executed()):.0f}"),
    ]
    table("Killed", rows)
    if not same or executed > total + 4:
        sys.exit("studies: not what it should be")


def points(count: int) -> None:
    """Expansion of a large grid in a process of its own."""
    again = [sys.executable, __file__, "--expand", str(count)]
    found = json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    rows = [
        ("points", count),
        ("settings of a point, CPU us", f"{found['settings']:.1f}"),
        ("a point checked, with its key, CPU us", f"{found['check']:.1f}"),
        ("peak memory of the process, MB", f"{found['MB']:.0f}"),
        ("of which before the grid, MB", f"{found['before']:.0f}"),
    ]
    table("A large grid, fluid engine", rows)


def expand(count: int) -> None:
    """Measure in this process."""
    from farlink.engines import prepare
    from farlink.study.plan import Plan

    losses = [1e-6 * (i + 1) for i in range(100)]
    data = scenario(20.0, 4) | {"engines": ["fluid"]}
    data["grid"] = {"link.channel.loss": losses, "link.rate_bps": [1e6 + i for i in range(count // 100)]}
    plan = Plan(prepare(data), ("fluid",), {})
    before = peak_mb()
    begin = time.process_time()
    for point in range(len(plan)):
        plan.points.settings(point)
    settings = time.process_time() - begin
    begin = time.process_time()
    plan.check()
    check = time.process_time() - begin
    print(json.dumps({"settings": 1e6 * settings / count, "check": 1e6 * check / count, "MB": peak_mb(), "before": before}))


def dask(folder: Path, runs: int, run_s: float) -> None:
    """A scheduler and two workers, one of which is killed."""
    (folder / "study.toml").write_text(toml(calibrated(run_s, runs)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []
    common = ["--dashboard-address", "127.0.0.1:0"]
    begin = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), *common]
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", *common]
    try:
        started.append(subprocess.Popen(begin, **QUIET))
        wait_for(lambda: answers(port))
        started += [subprocess.Popen(work, cwd=folder, **QUIET) for _ in range(2)]
        coordinator = subprocess.Popen([*FARLINK, "sweep", "study.toml", "-o", "out", "--executor", address], cwd=folder)
        store = Store(folder / "out")
        wait_for(store.description_path.exists)
        total = sum(1 for _ in studies.open(folder / "out").plan.planned())
        wait_for(lambda: len(store.finished()) >= 0.3 * total)
        started[2].kill()
        _, status, used = os.wait4(coordinator.pid, 0)
        scheduler_s = cpu_s(started[0].pid)
        executed = list(store.executed())
    finally:
        for process in started:
            process.kill()
            process.wait()
    engine_s = sum(one["cpu_s"] for one in executed)
    timed([*FARLINK, "sweep", "result", "out", "--parquet", "out.parquet"], folder)
    timed([*FARLINK, "run", "study.toml", "--threads", "1", "--parquet", "run.parquet"], folder)
    same = (folder / "out.parquet").read_bytes() == (folder / "run.parquet").read_bytes()
    client_s = used.ru_utime + used.ru_stime
    rows = [
        ("units, executed in all", f"{total}, {len(executed)}"),
        ("exit status of the coordinator", os.waitstatus_to_exitcode(status)),
        ("rows equal to those of one process, byte for byte", "yes" if same else "NO"),
        ("CPU s of the scheduler, of the client", f"{scheduler_s:.1f}, {client_s:.1f}"),
        ("CPU s of the units", f"{engine_s:.1f}"),
        ("scheduler and client, of the units'", f"{100 * (scheduler_s + client_s) / engine_s:.1f} %"),
    ]
    table("Dask, one of two workers killed at 30 %", rows)


def answers(port: int) -> bool:
    """Whether a scheduler listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def cpu_s(process: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(command: list[str], folder: Path) -> tuple[float, float, str]:
    """CPU time and wall time of a command and its children, and what it said on standard error."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.monotonic() - begin, done.stderr


def peak_mb() -> float:
    """Peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 * 1.048576


def wait_for(condition: Any) -> None:
    """Look again and again."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            sys.exit("studies: it takes too long")
        time.sleep(0.2)


def table(title: str, rows: list[tuple[str, Any]]) -> None:
    """Print a table."""
    print(f"\n| {title} | |\n|---|--:|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    print(f"\n{described()}; load {os.getloadavg()[0]:.0f}", flush=True)


def main() -> None:
    """Run what is asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=[[], "kills", "points", "dask"], help="all by default")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--run-s", type=float, default=0.1, help="CPU seconds of a run")
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--expand", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.expand:
        expand(asked.expand)
        return
    what = asked.what or ["kills", "points", "dask"]
    if "points" in what:
        points(asked.points)
    for name, program in (("kills", kills), ("dask", dask)):
        if name in what:
            with tempfile.TemporaryDirectory() as folder:
                program(Path(folder), asked.runs, asked.run_s)


if __name__ == "__main__":
    main()
