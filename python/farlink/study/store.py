"""The folder of a study: its description, and a file for each finished unit, whose name is the unit's key.

| file | what |
|---|---|
| ``study.json`` | what is studied, by which build, and how runs are divided into units |
| ``units/ab/KEY.parquet`` | the rows of a finished unit |
| ``failed/KEY.json`` | a unit that was set aside |
| ``workers/NAME.log`` | a line for each unit that a worker has executed |
| ``*.lock`` | held while a coordinator, or the collection of error events, is at work |

The folder is the truth: who finds a unit's file need not compute it, and who computes it twice has the same file.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farlink.errors import OutputError, StudyError
from farlink.study import unit_file
from farlink.study.unit_file import UnitContent
from farlink.untrusted import read_file

FORMAT = 1
DESCRIPTION = "study.json"
_MOST_DESCRIPTION_BYTES = 1 << 28


@dataclass(frozen=True)
class Store:
    """A folder of a study."""

    folder: Path

    @property
    def description_path(self) -> Path:
        """Where it is described."""
        return self.folder / DESCRIPTION

    def describe(self, description: Mapping[str, Any]) -> dict[str, Any]:
        """Write the description, unless another process was first; return the one that holds.

        Raises
        ------
        StudyError, OutputError
            If it cannot be written or read.
        """
        text = json.dumps({"format": FORMAT, **description}, indent=1)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            temporary = self.folder / f".{DESCRIPTION}.{_process()}"
            temporary.write_text(text, encoding="utf-8")
            try:
                # A link, other than a rename, fails if the name is there: the first one holds for all.
                os.link(temporary, self.description_path)
            except FileExistsError:
                pass
            except OSError:  # a file system without links
                if not self.description_path.exists():
                    temporary.replace(self.description_path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(
                f"cannot write {self.description_path}: {error.strerror}",
                "choose a folder to write to, with free space",
            ) from error
        return self.description()

    def description(self) -> dict[str, Any]:
        """The description.

        Raises
        ------
        StudyError
            If there is none, or it cannot be read.
        """
        path = self.description_path
        try:
            found = json.loads(read_file(path, StudyError, _MOST_DESCRIPTION_BYTES))
        except FileNotFoundError as error:
            message = f"{self.folder} is not the folder of a study: there is no {DESCRIPTION}"
            raise StudyError(message, f"begin one: farlink sweep STUDY.toml -o {self.folder}") from error
        except OSError as error:
            raise StudyError(f"cannot read {path}: {error.strerror}", "give a folder that you may read") from error
        except (ValueError, RecursionError) as error:
            raise StudyError(f"{path} is not whole: {error}", "begin the study in another folder") from error
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            said = found.get("format") if isinstance(found, dict) else None
            raise StudyError(
                f"{path} has format {said!r}, and this farlink knows {FORMAT}", "begin the study in another folder"
            )
        return found

    def unit_path(self, key: str) -> Path:
        """Where the file of a unit lies."""
        return self.folder / "units" / key[:2] / f"{key}.parquet"

    def finished(self) -> set[str]:
        """Keys of the units with a file; whether a file is usable shows when it is read."""
        found = set()
        for path in self._unit_files():
            found.add(path.name.removesuffix(".parquet"))
        return found

    def read(self, key: str) -> UnitContent:
        """The content of a unit's file.

        Raises
        ------
        unit_file.DamagedUnit
            If it is truncated, changed or of another unit.
        OSError
            If it cannot be read.
        """
        return unit_file.parse(self.unit_path(key).read_bytes(), key)

    def check(self, key: str) -> None:
        """Check that a unit's file is whole, without reading its rows; it raises what `read` does."""
        data = self.unit_path(key).read_bytes()
        if not unit_file.is_sealed(data, key):
            unit_file.parse(data, key)  # says what is wrong

    def write(self, key: str, content: UnitContent) -> int:
        """Store a unit: beside, synced, renamed. If it is there already, both must be alike.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        StudyError
            If there is another content under the same key.
        OSError
            If it cannot be written.
        """
        path, data = self.unit_path(key), unit_file.encode(key, content)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{key}.{_process()}")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._check_alike(key, content)
            temporary.replace(path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
        return len(data)

    def _check_alike(self, key: str, content: UnitContent) -> None:
        try:
            there = self.read(key)
        except (OSError, unit_file.DamagedUnit):
            return
        if there.digest != content.digest:
            message = f"unit {key} was computed twice with unlike rows: {self.unit_path(key)} is not what this worker has"
            raise StudyError(message, "find the machine that computes otherwise (memory, compiler); then remove that file")

    def take_over(self, key: str, other: Store) -> bool:
        """Take a finished unit over from another folder: by a link, or a copy on another file system.

        Returns
        -------
        bool
            Whether the other has it.
        """
        try:
            content = other.read(key)
        except (OSError, unit_file.DamagedUnit):
            return False
        path = self.unit_path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(other.unit_path(key), path)
        except OSError:
            self.write(key, content)
        return True

    def set_aside(self, key: str, why: Mapping[str, Any]) -> None:
        """Remember a unit that cannot be done."""
        path = self.folder / "failed" / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{_process()}")
        temporary.write_text(json.dumps(why, indent=1), encoding="utf-8")
        temporary.replace(path)

    def try_again(self, key: str) -> None:
        """Forget that a unit was set aside."""
        (self.folder / "failed" / f"{key}.json").unlink(missing_ok=True)

    def failures(self) -> list[dict[str, Any]]:
        """Units that were set aside, and why."""
        found = []
        for path in sorted((self.folder / "failed").glob("*.json")):
            try:
                found.append({"key": path.stem, **json.loads(path.read_text(encoding="utf-8"))})
            except (OSError, ValueError, TypeError):
                found.append({"key": path.stem, "error": "the record of this failure is damaged"})
        return found

    def log(self, key: str, seconds: float, cpu_s: float) -> None:
        """Add a line on an executed unit to the log of this worker."""
        folder = self.folder / "workers"
        folder.mkdir(parents=True, exist_ok=True)
        spent = {"seconds": round(seconds, 6), "cpu_s": round(cpu_s, 6)}
        line = json.dumps({"key": key, **spent, "at": round(time.time(), 3)}) + "\n"
        with (folder / f"{_process()}.log").open("a", encoding="utf-8") as file:
            file.write(line)

    def executed(self) -> Iterator[dict[str, Any]]:
        """Entries of the logs, worker by worker; a line that was cut off is passed over."""
        for path in sorted((self.folder / "workers").glob("*.log")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    found = json.loads(line)
                    yield {
                        "worker": path.stem,
                        "key": str(found["key"]),
                        "at": float(found["at"]),
                        "seconds": float(found["seconds"]),
                        "cpu_s": float(found["cpu_s"]),
                    }
                except (ValueError, KeyError, TypeError):
                    continue

    def _unit_files(self) -> Iterator[Path]:
        units = self.folder / "units"
        if not units.is_dir():
            return
        for entry in os.scandir(units):
            if entry.is_dir() and len(entry.name) == 2:
                for file in os.scandir(entry.path):
                    if file.name.endswith(".parquet") and not file.name.startswith("."):
                        yield Path(file.path)


def _process() -> str:
    """A name for this process, unlike those on other machines."""
    return f"{socket.gethostname()}-{os.getpid()}"


def _sync_folder(folder: Path) -> None:
    """Have the disk know of a rename."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
