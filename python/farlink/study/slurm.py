"""The job of a SLURM array that works on a study in a shared folder."""

from __future__ import annotations

import shlex
from pathlib import Path


def script(study: Path, folder: Path, *, jobs: int, cores: int, hours: float, options: list[str]) -> str:
    """A job for ``sbatch``: an array whose tasks each do a part, over the folder alone, without a daemon.

    Parameters
    ----------
    study, folder
        The scenario, and the folder of the study, which all nodes must see.
    jobs, cores
        Tasks of the array, and cores of each.
    hours
        Time limit of a task, in hours.
    options
        More options of ``farlink sweep``.

    Examples
    --------
    >>> print(script(Path("study.toml"), Path("out"), jobs=4, cores=2, hours=1.5, options=[]).splitlines()[1])
    #SBATCH --array=0-3
    """
    minutes = max(1, round(60 * hours))
    command = ["farlink", "sweep", str(study), "-o", str(folder), "--workers", str(cores), *options]
    return f"""#!/bin/sh
#SBATCH --array=0-{jobs - 1}
#SBATCH --cpus-per-task={cores}
#SBATCH --time={minutes}
#SBATCH --job-name=farlink
#SBATCH --requeue
# A task that is killed or ends early loses the units under way. Submit again: what is done stays.
exec {shlex.join(command)} --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
"""
