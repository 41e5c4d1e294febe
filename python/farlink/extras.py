"""Optional dependencies, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from farlink.errors import MissingExtraError

# Purpose -> the extra of farlink that is for it, where a module serves several.
_TASKS = {
    "the statistics of call drops": "calls",
    "the survival of calls": "calls",
    "a signal that varies": "calls",
    "rain attenuation": "rain",
    "a study in a folder": "sweep",
    "[sample]": "sweep",
}

# Module -> the extra of farlink that installs it, for other purposes.
_EXTRA = {
    "matplotlib": "plot",
    "tomli_w": "plot",
    "pydantic": "tune",
    "pyarrow": "parquet",
    "pandas": "pandas",
    "polars": "polars",
    "scipy": "optics",
    "skyfield": "orbits",
    "h5py": "optics",
    "itur": "rain",
    "serialx": "operator",
    "dbus_fast": "operator",
    "apprise": "alerts",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "nicegui": "web",
    "distributed": "dask",
    "SALib": "indices",
}


def require(module: str, purpose: str) -> Any:
    """Import an optional module, or say how to install it.

    Parameters
    ----------
    module
        Its name, with submodule, for example ``"pyarrow.parquet"``.
    purpose
        What needs it, for the message: ``"a figure"``.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".", 1)[0]
        if error.name is None or error.name.split(".", 1)[0] != package:
            raise
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed",
            f"install it with: pip install 'farlink[{_TASKS.get(purpose) or _EXTRA[package]}]'",
        ) from error
