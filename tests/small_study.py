"""A study of two points whose units are short, and finished or killed within seconds."""

from __future__ import annotations

import json
from pathlib import Path

import farlink
from farlink.study.opened import OpenedStudy


def text(runs: int) -> str:
    """The study, with so many runs of each point."""
    return f"""
duration_s = 3
runs = {runs}
link = {{ rate_bps = 1e6, delay_s = 0.05, channel = {{ kind = "loss", loss = 0.01 }} }}
transport.tcp.kind = "tcp"
flow.bulk = {{ transport = "tcp", traffic = {{ kind = "bulk" }} }}
grid."link.channel.loss" = [0.001, 0.01]
"""


def begun_in_pairs(study_file: Path, folder: Path) -> OpenedStudy:
    """A study in a folder, with units of two runs each, however long a run takes."""
    path = OpenedStudy.begun(farlink.load(study_file), folder).store.description_path
    path.write_text(json.dumps(json.loads(path.read_text()) | {"runs_per_unit": 2}))
    return OpenedStudy.at(folder)
