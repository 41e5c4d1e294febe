"""The dashboard as a process, and a browser that looks at it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
PATIENCE_S = 60.0


def missing(*, browser: bool = False) -> str:
    """What the tests lack; empty if they have all."""
    needed = ("nicegui", "playwright", "axe_playwright_python") if browser else ("nicegui",)
    lacking = [name for name in needed if find_spec(name) is None]
    lacking += ["chromium (apt-get install chromium)"] if browser and CHROMIUM is None else []
    return f"not installed: {', '.join(lacking)}" if lacking else ""


class Dashboard:
    """`farlink web` with arguments, in a folder; listens at a free port."""

    def __init__(self, folder: Path, *arguments: str | Path) -> None:
        self._log = (folder / "web.log").open("wb")
        # No password of whoever runs the tests.
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
        command = [sys.executable, "-m", "farlink.cli", "web", *map(str, arguments), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment
        )
        self.folder = folder
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().removesuffix("/")
        assert self.url, self.log

    @property
    def log(self) -> str:
        """What it has told."""
        return (self.folder / "web.log").read_text(errors="replace")

    @property
    def memory_kb(self) -> int:
        """What it has in memory, in kB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def end(self) -> int:
        """End it; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self._log.close()


@contextmanager
def browser() -> Iterator[Any]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playing:
        made = playing.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()


class Watched:
    """A page of a browser. What must not be is noted: errors, and requests to another host.

    Attributes
    ----------
    faults
        What was noted.
    """

    def __init__(self, chromium: Any, url: str, **options: Any) -> None:
        self.url, self.faults = url, []
        self.page = chromium.new_context(**options).new_page()
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.on("websocket", lambda socket: self._asked(socket.url))

    def open(self, path: str) -> Any:
        """Go to a page and wait until it lives."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector("#content h1")
        return self.page

    def violations(self, *rules: str) -> list[str]:
        """What axe-core finds by all its rules, or by some."""
        from axe_playwright_python.sync_playwright import Axe

        options: dict[str, Any] = {"resultTypes": ["violations"]}  # the rest would take longer to tell than to find
        if rules:
            options["runOnly"] = {"type": "rule", "values": list(rules)}
        found = Axe().run(self.page, options=options).response["violations"]
        return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]

    def close(self) -> None:
        """Close it and its context."""
        self.page.context.close()

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def _asked(self, url: str) -> None:
        own = (self.url, self.url.replace("http:", "ws:"), "data:", "blob:")
        if not url.startswith(own):
            self.faults.append(f"request to another host: {url}")
