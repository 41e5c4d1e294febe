"""Plan and run data transport over links that are long, lossy and drop out.

>>> import farlink
>>> result = farlink.run("scenarios/geo-tcp.toml")  # doctest: +SKIP
>>> result.table()  # doctest: +SKIP
>>> result.plot()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farlink import channels as channels
    from farlink import models as models
    from farlink import tune as tune
    from farlink._core import Cancel as Cancel
    from farlink._core import __version__ as __version__
    from farlink.build import build_name as build_name
    from farlink.engines import run as run
    from farlink.engines import trace_run as trace_run
    from farlink.errors import FarlinkError as FarlinkError
    from farlink.result import Result as Result
    from farlink.scenario import Scenario as Scenario
    from farlink.scenario import load as load
    from farlink.series import Series as Series
    from farlink.study import Study as Study

__all__ = [
    "Cancel",
    "FarlinkError",
    "Result",
    "Scenario",
    "Series",
    "Study",
    "__version__",
    "build_name",
    "channels",
    "load",
    "models",
    "run",
    "trace_run",
    "tune",
]

# Packages that are reached as attributes, with all their modules, and imported when they are first used.
_PACKAGES = ("channels", "models", "tune")

_HOME = {
    "Cancel": "farlink._core",
    "FarlinkError": "farlink.errors",
    "Result": "farlink.result",
    "Scenario": "farlink.scenario",
    "Series": "farlink.series",
    "Study": "farlink.study",
    "__version__": "farlink._core",
    "build_name": "farlink.build",
    "load": "farlink.scenario",
    "run": "farlink.engines",
    "trace_run": "farlink.engines",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``import farlink`` is quick."""
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
