"""A worker process: units come in on standard input, what became of them goes out on standard output, a line of JSON each.

It ends when its input ends, as when the coordinator is killed. The unit that it has at that moment is finished and stored.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from farlink.study.execute import run_unit


def main(folder: str) -> None:
    """Do units until there are no more."""
    # Ctrl-C on a terminal reaches all processes; the coordinator decides what becomes of this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Output of an engine or a library must not be taken for an answer.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            answer = json.dumps(run_unit(folder, json.loads(line)))
            try:
                answers.write(answer + "\n")
                answers.flush()
            except BrokenPipeError:  # the coordinator is gone, and the unit is stored
                os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
