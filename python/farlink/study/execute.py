"""One unit of work: from its scenario to its file. It is what workers run, wherever they are."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farlink.build import SHOWN, build_name
from farlink.engines import model
from farlink.errors import FarlinkError, ScenarioError, StudyError
from farlink.scenario import Scenario, find_data_file
from farlink.study.locks import held
from farlink.study.pieces import Study
from farlink.study.plan import digest_of
from farlink.study.store import Store
from farlink.study.unit_file import UnitContent

if TYPE_CHECKING:
    from farlink.result import Result

Job = Mapping[str, Any]


def run_unit(folder: str, job: Job) -> dict[str, Any]:
    """Do a unit, and store it.

    Parameters
    ----------
    folder
        Of the study.
    job
        What `Plan.job` gives: the unit's key and scenario, and no more.

    Returns
    -------
    dict
        ``seconds`` it took and ``bytes`` of its file; or ``error``, the kind (``"build"``, ``"file"``, ``"disk"``,
        ``"unlike"``, ``"unit"``), with ``message`` and ``remedy``.
    """
    try:
        begin, cpu = time.monotonic(), time.process_time()
        _check(job)
        content = computed(folder, job)
        size = Store(Path(folder)).write(job["key"], content)
        seconds = time.monotonic() - begin
        Store(Path(folder)).log(job["key"], seconds, time.process_time() - cpu)
    except _StopsAll as stop:
        return {"error": stop.kind, "message": stop.message, "remedy": stop.remedy}
    except StudyError as error:
        return {"error": "unlike", "message": error.message, "remedy": error.remedy}
    except FarlinkError as error:
        return {"error": "unit", "message": error.message, "remedy": error.remedy}
    except OSError as error:
        remedy = "free some space, or move the folder" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "see to the disk"
        return {"error": "disk", "message": f"cannot write to {folder}: {error.strerror}", "remedy": remedy}
    return {"seconds": seconds, "bytes": size}


def computed(folder: str, job: Job) -> UnitContent:
    """The rows of a unit, on one thread.

    Raises
    ------
    FarlinkError
        If it is refused.
    """
    found = _result(folder, job)
    if found.interrupted:
        raise KeyboardInterrupt
    return UnitContent(
        rows={name: values for name, values in found.columns.items() if name != "point"},
        summary=None if job["engine"] == "packet" else dict(found.summary_columns),
        notes=list(found.notes),
        approximations=list(found.approximations),
        build=found.build,
    )


class _StopsAll(FarlinkError):
    """An error that no other unit escapes."""

    def __init__(self, kind: str, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        self.kind = kind


def _check(job: Job) -> None:
    if job["build"] != build_name():
        message = f"this worker has build {build_name()[:SHOWN]}, and the study is of build {job['build'][:SHOWN]}"
        raise _StopsAll("build", message, "install the same farlink where workers run")
    for name, digest in job["files"].items():
        try:
            is_same = not digest or _digest(find_data_file(name, base=Path(job["base"]))) == digest
        except ScenarioError as error:
            raise _StopsAll("file", error.message, "workers need the files that the study names, at the same place") from error
        if not is_same:
            message = f"{name} has changed since the study began, or is another one here"
            raise _StopsAll("file", message, "put the file back as it was, or begin the study in another folder")


def _digest(path: Path) -> str:
    stat = path.stat() if path.is_file() else None
    return digest_of(path) if stat is None else _digest_of_version(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _digest_of_version(path: Path, _mtime_ns: int, _size: int) -> str:
    return digest_of(path)


def _result(folder: str, job: Job) -> Result:
    if job["engine"] == "model":
        return model.run(_scenario(job["scenario"], job["base"], "model"))
    study = _study(folder, job["scenario"], job["base"], job["engine"])
    return study.run(0, first_run=job["first_run"], runs=job["runs"])


def _scenario(text: str, base: str, engine: str) -> Scenario:
    return Scenario({**json.loads(text), "engines": [engine]}, Path(base))


# Units of one point come one after the other.
@lru_cache(maxsize=4)
def _study(folder: str, text: str, base: str, engine: str) -> Study:
    scenario = _scenario(text, base, engine)
    if not needs_events(text):
        return Study(scenario, threads=1)
    # The first process collects the error events and keeps them; the others wait and find them.
    with held(Path(folder) / "events.lock", wait=True):
        return Study(scenario, threads=1)


def needs_events(text: str) -> bool:
    """Whether a scenario, as JSON, may have channels that play error events of a decoder, which are collected once."""
    return '"coded"' in text or '"coding"' in text
