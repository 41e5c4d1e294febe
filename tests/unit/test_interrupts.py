"""Ctrl-C among many short pieces of work."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

# Each run takes some milliseconds: less than the time between two looks at signals.
PROGRAM = """
import time

import farlink
scenario = {
    "duration_s": 400, "runs": 1, "path": ["wan"],
    "hop": {"wan": {"rate_bps": 1e6, "delay_s": 0.05}},
    "transport": {"t": {"kind": "tcp"}},
    "flow": {"f": {"transport": "t", "traffic": {"kind": "bulk"}}},
}
print("ready", flush=True)
ends = time.monotonic() + 30 # however fast a machine is
while time.monotonic() < ends:
    if farlink.run(scenario).interrupted:
        break
else:
    raise SystemExit("it was never interrupted")
"""


def test_an_interrupt_that_comes_as_a_run_ends_is_not_lost():
    """Of those that came in the last look of a run, all were lost once: half of the Ctrl-C's of a study."""
    draw = random.Random(1)
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0.3, 0.8))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGINT) or "KeyboardInterrupt" in said, said
        assert "never interrupted" not in said
