"""Code shared by the programs that measure for an hour as root: what is finished is kept, and errors are told in two lines."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import page
from kernel_paths import UnusableError, check_machine, output_of, remove_leftovers

# Where examples are built.
PROGRAMS = page.ROOT / "target" / "release" / "examples"


def kept_lines(path: Path) -> Iterator[dict[str, Any]]:
    """What was kept in a file, a line of JSON for each finished part."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):  # the last line of a program that was killed
                yield json.loads(line)


def keep_line(path: Path, line: dict[str, Any]) -> None:
    """Append a finished part."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def commit() -> str:
    """The commit that is measured, with a plus sign if the sources differ from it."""
    git = ("git", "-C", str(page.ROOT))
    commit = output_of(*git, "rev-parse", "--short=12", "HEAD").strip()
    is_changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "crates"], check=False).returncode != 0
    return f"{commit}+" if is_changed else commit


def prepare(programs: Path | None, *examples: tuple[str, ...]) -> None:
    """See that the machine can measure; build examples, each a crate and names, unless there is a folder with them."""
    check_machine()
    remove_leftovers()
    if programs is None:
        for package, *names in examples:
            build(package, *names)


def build(package: str, *names: str) -> None:
    """Build examples of a crate."""
    examples = [word for name in names for word in ("--example", name)]
    done = subprocess.run(["cargo", "build", "--release", "--quiet", "-p", package, *examples], cwd=page.ROOT, check=False)
    if done.returncode != 0:
        quit_for(f"the examples of {package} cannot be built", "see above")


def quit_for(what: str, remedy: str) -> NoReturn:
    """End with an error."""
    print(f"error: {what}\nhint: {remedy}", file=sys.stderr)
    raise SystemExit(2)


def finish_or_quit(measure: Callable[[], None]) -> None:
    """Measure; errors are told in two lines, and Ctrl-C and SIGTERM leave what is finished."""
    # What a shell starts in the background ignores SIGINT, and so would its children.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        measure()
    except UnusableError as error:
        quit_for(str(error), error.remedy)
    except RuntimeError as error:
        quit_for(str(error), "the same command goes on with what is missing")
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on.", file=sys.stderr)
        raise SystemExit(130) from None
