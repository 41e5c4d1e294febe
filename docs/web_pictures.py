"""Pictures of the dashboard for its guide: a bank of modems, two operators, and Debian's chromium.

    .venv/bin/python docs/web_pictures.py

Writes `docs/pictures/web-*.png`. Takes two minutes, so that there are some calls to see; another time shows other ones.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.operator.live_world import until, world_in  # noqa: E402
from tests.web.journals import write_bundle, write_calls  # noqa: E402
from tests.web.web_world import Dashboard, Watched, browser  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 150_000
_RUN_S = 90.0


def main() -> None:
    """Make them all."""
    with tempfile.TemporaryDirectory() as name, world_in(Path(name)) as world, browser() as chromium:
        folder = Path(name)
        world.bank(4, modem={2: "mean_up_s = 25", 3: "mean_up_s = 50"})
        near = world.start(world.configure("near", 4, number=lambda at: "999" if at == 4 else f"{200 + at}"))
        world.start(world.configure("far", 4))
        until(lambda: near.ups() >= 3)
        time.sleep(_RUN_S)
        near.ask(do="hold", lines=["near-3"], cause="antenna is repaired")
        write_calls(folder / "old.journal", calls=120)
        write_bundle(folder)
        dashboard = Dashboard(folder, "near.toml", "old.toml")
        try:
            wide = Watched(chromium, dashboard.url, viewport={"width": 1100, "height": 640})
            phone = Watched(chromium, dashboard.url, viewport={"width": 360, "height": 720}, color_scheme="dark")
            _picture(wide, "/", "overview")
            _picture(phone, "/", "phone")
            _picture(wide, "/timeline?bundle=near&span=1h", "timeline", within_s=_RUN_S)
            _picture(wide, "/fit?bundle=old", "fit")
            page = wide.open("/edit?bundle=near")
            editor = page.get_by_label("The bundle, as TOML")
            editor.fill(editor.input_value().replace("echo_interval_s", "echo_intervall_s").replace('"hayes"', '"hays"', 1))
            page.get_by_role("button", name="Check").click()
            page.locator("#mistakes table").wait_for()
            page.evaluate("document.querySelector('textarea').rows = 10")
            _saved(wide, "check")
            assert wide.faults + phone.faults == []
        finally:
            dashboard.end()


def _picture(watched: Watched, path: str, name: str, *, within_s: float | None = None) -> None:
    page = watched.open(path)
    if "timeline" in path or "fit" in path:
        page.locator("canvas").wait_for()
    if within_s is not None:
        start = 100 * (1 - 1.3 * within_s / 3600)
        zoom = f"{{type: 'dataZoom', start: {start}, end: 100}}"
        page.evaluate(f"getElement(document.querySelector('.chart').id.slice(1)).chart.dispatchAction({zoom})")
    page.wait_for_timeout(1500)  # charts are drawn
    _saved(watched, name)


def _saved(watched: Watched, name: str) -> None:
    path = PICTURES / f"web-{name}.png"
    watched.page.screenshot(path=path)
    size = path.stat().st_size
    assert size <= MOST_BYTES, f"{path}: {size} bytes"
    print(f"{path.relative_to(ROOT)}: {size} bytes")


if __name__ == "__main__":
    main()
