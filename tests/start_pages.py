"""The commands of the Start pages, in new environments of a wheel: without extras, then with each extra alone.

Usage:  python -m tests.start_pages WHEEL [EXTRA...]     no extra: `base`; all by default

A command either does its work, or names the extra that it lacks with status 2, where that is not the one that is there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("docs/guides/install.md", "docs/guides/first-scenario.md")
_BLOCKS = re.compile(r"^```(?P<kind>\w*) ?(?P<file>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_FOREIGN = ("make ", "pip install", ". .venv")


def steps() -> list[tuple[str, str]]:
    """Files and commands of the pages, in their order: ("file NAME", text) or ("$", command)."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        for block in _BLOCKS.finditer((ROOT / page).read_text(encoding="utf-8")):
            if block["file"]:
                found.append((f"file {block['file']}", block["text"]))
                continue
            for line in block["text"].splitlines():
                command = line.removeprefix("$ ").partition(" #")[0].strip()
                if block["kind"] in ("", "console") and command.startswith("farlink") and not command.startswith(_FOREIGN):
                    found.append(("$", command))
    return found


def held(extra: str) -> set[str]:
    """An extra and those that it brings."""
    needed = _PROJECT["optional-dependencies"].get(extra, [])
    brought = {name for one in needed if (found := re.match(r"farlink\[(.+)\]", one)) for name in found[1].split(",")}
    return {extra}.union(*(held(name) for name in brought))


def tried(wheel: Path, extra: str, folder: Path) -> list[str]:
    """What went wrong with one extra; nothing if all is well."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    what = str(wheel) if extra == "base" else f"{wheel}[{extra}]"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    done = subprocess.run([python, "-m", "pip", "install", "-q", *constraints, what], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"pip install: {done.stderr[-500:]}"]
    work = folder / "work"
    work.mkdir()
    environment = {"PATH": f"{folder / 'venv' / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    wrong, ran, refused = [], 0, set()
    for kind, text in steps():
        if kind != "$":
            with (work / kind.removeprefix("file ")).open("a", encoding="utf-8") as file:
                file.write(text)
            continue
        done = subprocess.run(["bash", "-c", text], cwd=work, env=environment, capture_output=True, text=True, timeout=600)
        needs = re.search(r"farlink\[(\w+)\]", done.stderr)
        is_shown_refusal = done.returncode == 2 and "link.chanel" in text
        if done.returncode == 0 or is_shown_refusal:
            ran += 1
        elif done.returncode == 2 and needs and needs[1] not in held(extra):
            refused.add(needs[1])
        else:
            wrong.append(f"{text}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        if "Traceback" in done.stderr:
            wrong.append(f"{text}: a traceback")
    said = f", the rest names {', '.join(sorted(refused))}" if refused else ""
    print(f"{extra}: {ran} of {sum(kind == '$' for kind, _ in steps())} commands ran{said}", flush=True)
    return wrong


def main() -> None:
    """Try what is asked for."""
    wheel, *chosen = sys.argv[1:]
    extras = [name for name in _PROJECT["optional-dependencies"] if name != "test"]
    wrong = []
    for extra in chosen or ["base", *extras]:
        folder = Path(tempfile.mkdtemp(prefix="farlink-start-"))
        try:
            wrong += [f"{extra}: {what}" for what in tried(Path(wheel).resolve(), extra, folder)]
        finally:
            shutil.rmtree(folder)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
