"""Files for those who watch bundles: Grafana's dashboard and Prometheus's alert rules."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

from farlink.errors import OutputError
from farlink.operator.watch.dashboard import dashboard
from farlink.output import check_directory, whole_file

DASHBOARD, RULES = "farlink-dashboard.json", "farlink-rules.yaml"


def write(folder: Path) -> list[Path]:
    """Write both files.

    Parameters
    ----------
    folder
        Where; it is made if it is missing.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    check_directory(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {folder}: {error.strerror}", "choose a place you may write to") from error
    texts = {DASHBOARD: json.dumps(dashboard(), indent=1) + "\n", RULES: rules()}
    for name, text in texts.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def rules() -> str:
    """The alert rules, in YAML."""
    return resources.files("farlink.operator.watch").joinpath("rules.yaml").read_text(encoding="utf-8")
