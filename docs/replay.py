"""Pages that run: files, Python and commands of a page, in its order and in one folder of its own.

What a block is stands behind its ticks:

- ```` ```toml NAME ````, any language with a name: a file, which is written; a second block of that name is added to it
- ```` ```console ````: lines behind `$ ` are run by a shell, and what they print is put in the place of what stands there
- ```` ``` ```` with lines behind `$ `: they are run and must succeed; what they print is not shown
- ```` ```python ````: run in one namespace per page; with `>>>` its output is compared

A comment over a block says why it is not run, `<!-- not run: it needs root -->`; or which test runs it in its own way,
`<!-- run by tests/cli/test_emulate.py -->`; or what is added to each `farlink run` of it, as in
`<!-- run with --set duration_s=20 -->`.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>(?:not run:|run by|run with) .*?) -->\n)?"
    r"```(?P<kind>\w*)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
# A command, with the lines that it continues on.
COMMAND = re.compile(r"^\$ (.*(?:(?<=\\)\n.*)*)$", re.MULTILINE)

# A line of a shell, its folder and environment: what it printed, and its exit status.
Run = Callable[[str, Path, dict[str, str]], tuple[str, int]]


class PageError(ValueError):
    """A command or an example of a page does not do what the page says."""


def commands(block: re.Match[str]) -> list[str]:
    """The lines of a shell in a block; none if it is a file, Python or the output of something else."""
    return COMMAND.findall(block["text"]) if not block["file"] and block["kind"] in ("", "console") else []


def is_run(block: re.Match[str]) -> bool:
    """Whether a block is run here, as a command or as Python."""
    is_python = block["kind"] == "python" and not block["file"]
    return bool(is_python or commands(block)) and not (block["mark"] or "").startswith(("not run", "run by"))


def pages() -> list[Path]:
    """The pages with something that is run."""
    texts = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("*/*.md"))]
    return [page for page in texts if any(is_run(block) for block in BLOCK.finditer(page.read_text(encoding="utf-8")))]


def replayed(page: Path, run: Run | None = None) -> str:
    """The page with what its commands print today.

    Raises
    ------
    PageError
        If Python fails or prints something else, or a command without shown output fails.
    """
    run = run or run_command
    with tempfile.TemporaryDirectory() as name, inside(Path(name)) as environment:
        folder, names = Path(name), {"__name__": "__main__"}
        if page == ROOT / "README.md":
            (folder / "scenarios").symlink_to(ROOT / "scenarios")

        def replay(block: re.Match[str]) -> str:
            if block["file"]:
                with (folder / block["file"]).open("a", encoding="utf-8") as file:
                    file.write(block["text"])
            elif is_run(block) and block["kind"] == "python":
                _python(block["text"], names, page.name)
            elif is_run(block) and block["kind"] == "console":
                shown = "\n".join(f"$ {line}\n{run(_joined(line), folder, environment)[0]}" for line in commands(block))
                return block[0][: block.start("text") - block.start()] + shown + "```"
            elif is_run(block):
                more = (block["mark"] or "").removeprefix("run with")
                for line in commands(block):
                    said, status = run(_with_more(line, more), folder, environment)
                    if status:
                        msg = f"{page.name}: {line}\n{said}"
                        raise PageError(msg)
            return block[0]

        return BLOCK.sub(replay, page.read_text(encoding="utf-8"))


def _joined(line: str) -> str:
    return re.sub(r"\\\n\s*", "", line)


def _with_more(line: str, more: str) -> str:
    line = _joined(line).partition("  #")[0]
    if " | jq " in line and shutil.which("jq") is None:
        line = line.partition(" | jq ")[0]
    return re.sub(r"farlink run \S+", lambda found: found[0] + more, line)


def _python(text: str, names: dict[str, object], page: str) -> None:
    if text.startswith(">>>"):
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        test = doctest.DocTestParser().get_doctest(text, names, page, page, 0)
        said: list[str] = []
        if doctest.DocTestRunner(optionflags=flags).run(test, out=said.append, clear_globs=False).failed:
            raise PageError("".join(said))
        names.update(test.globs)
    else:
        exec(compile(text, page, "exec"), names)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[dict[str, str]]:
    """Work in a folder, with farlink's own commands first in the path; yield the environment of commands."""
    former = dict(os.environ)
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), former["PATH"]))
    # Not XDG_CACHE_HOME, which is Matplotlib's too: in an empty one it looks for the fonts of the system for seconds.
    os.environ.setdefault("FARLINK_CACHE", str(folder / ".cache" / "farlink"))
    try:
        with contextlib.chdir(folder):
            yield dict(os.environ)
    finally:
        os.environ.clear()
        os.environ.update(former)


def run_command(command: str, folder: Path, environment: dict[str, str]) -> tuple[str, int]:
    """Output and messages of a command, as a pipe sees them; of several programs in a row, the output before the messages.

    A pipe between programs passes output on at a time of its own, so that the messages of the first one would stand before or
    behind it by chance.
    """
    shell = shutil.which("bash") or "sh"
    done = subprocess.run(
        [shell, "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if "|" in command else subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout + (done.stderr or ""), done.returncode
