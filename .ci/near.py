"""Reads names of changed files, and prints the test files that are among them or directly import one of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import (.+)|import ([\w.]+))", re.MULTILINE)


def imported(text: str) -> set[str]:
    """Modules that a file names in its imports; ``from a import b`` names both ``a`` and ``a.b``."""
    found: set[str] = set()
    for package, names, module in IMPORT.findall(text):
        found.add(package or module)
        found |= {f"{package}.{name}" for name in re.findall(r"\w+", names)} if package else set()
    return found


def main() -> None:
    """Print the names, sorted."""
    changed = {line.strip() for line in sys.stdin}
    modules = {
        ".".join(Path(name).relative_to("python").with_suffix("").parts).removesuffix(".__init__")
        for name in changed
        if name.startswith("python/") and name.endswith(".py")
    }
    # Slow comparisons with peers have their own make targets.
    tests = [path for path in Path("tests").rglob("test_*.py") if "peers" not in path.parts]
    near = [path for path in tests if str(path) in changed or modules & imported(path.read_text(encoding="utf-8"))]
    print(*sorted(map(str, near)), sep="\n", end="")


if __name__ == "__main__":
    main()
