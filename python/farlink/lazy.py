"""Modules of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def modules(package: str, folder: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, which make its modules attributes.

    Parameters
    ----------
    package
        Name of the package.
    folder
        Path of its ``__init__.py``.

    Examples
    --------
    >>> import farlink
    >>> "arq" in dir(farlink.models)
    True
    """

    def names() -> list[str]:
        found = (path for path in Path(folder).parent.iterdir() if not path.name.startswith("_"))
        return sorted(path.stem for path in found if path.suffix == ".py" or (path / "__init__.py").is_file())

    def attribute(name: str) -> object:
        if name.startswith("_") or name not in names():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return attribute, names
