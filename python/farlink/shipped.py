"""Scenarios that come with farlink."""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from farlink.errors import OutputError, ScenarioError
from farlink.near_names import instead
from farlink.output import check_directory, whole_file


def titles() -> dict[str, str]:
    """Names of the scenarios, and their titles.

    Examples
    --------
    >>> titles()["geo-tcp"]
    'GEO file transfer: TCP versions against bit errors'
    """
    return {name: str(tomllib.loads(file.read_text("utf-8")).get("title", "")) for name, file in _files().items()}


def copy(names: list[str], folder: Path) -> list[Path]:
    """Copy scenarios, with the files that lie beside them, to a folder; nothing there is replaced.

    Parameters
    ----------
    names
        Of scenarios; all if there is none.
    folder
        Where to; it is made if it is not there.

    Returns
    -------
    list of Path
        The scenario files.

    Raises
    ------
    ScenarioError
        If there is no such scenario.
    OutputError
        If a file of that name is there already, or the folder cannot be written.
    """
    files = _files()
    wanted = [name.removesuffix(".toml") for name in names] or list(files)
    for name in wanted:
        if name not in files:
            raise ScenarioError(f"there is no scenario {name!r}", instead(name, files))
    targets = {}
    for name in wanted:
        for where, content in _with_beside(name).items():
            target = targets[folder / where] = content
            if (folder / where).exists() and (folder / where).read_bytes() != target.read_bytes():
                raise OutputError(f"{folder / where} is there already, and another file", "copy to another folder")
    check_directory(folder)
    for path, content in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_bytes(content.read_bytes())
    return [folder / f"{name}.toml" for name in wanted]


def _folder() -> Traversable:
    return resources.files("farlink").joinpath("scenarios")


def _files() -> dict[str, Traversable]:
    found = {entry.name.removesuffix(".toml"): entry for entry in _folder().iterdir() if entry.name.endswith(".toml")}
    return dict(sorted(found.items()))


def _with_beside(name: str) -> dict[str, Traversable]:
    """A scenario's file, and those in the folder of its name, by where they belong."""
    found = {f"{name}.toml": _files()[name]}
    beside = _folder().joinpath(name)
    if beside.is_dir():
        found |= {f"{name}/{entry.name}": entry for entry in beside.iterdir() if entry.is_file()}
    return found
