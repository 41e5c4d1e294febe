"""One call by a modem outside the bundle: faults of the line that makes it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from farlink.operator.at import load
from farlink.operator.config import Line
from farlink.operator.lines import Report, one_call


def called(monkeypatch: pytest.MonkeyPatch, fails_at: str, meanwhile) -> str:
    """What comes of a call whose line breaks."""

    class Broken:
        is_idle = True

        def __init__(self, *given: object, **_: object) -> None:
            self._tell, self._ordered = given[3], asyncio.Event()

        def dial(self, call: int) -> None:  # noqa: ARG002
            self._ordered.set()

        start_link = dial

        def hang_up(self, **_: object) -> None:
            return None

        async def run(self) -> None:
            await self._ordered.wait()
            if fails_at == "link":
                self._tell(Report("standby", "link-up"))
                await asyncio.sleep(0.01)
            raise RuntimeError("a fault of this program")

    async def tear_down() -> None:
        return None

    monkeypatch.setattr(one_call, "AtLine", Broken)
    line = Line("standby", "/none", "hayes", number="12")
    made = one_call.call(
        *(line, load("hayes"), SimpleNamespace(tear_down=tear_down)),
        **{"pins": None, "pin": None, "meanwhile": meanwhile, "set_up_limit_s": 5.0},
    )
    return asyncio.run(made)


@pytest.mark.parametrize("fails_at", ["dial", "link"])
def test_a_fault_of_the_line_is_no_call(monkeypatch, fails_at):
    async def deliver() -> None:
        await asyncio.sleep(60)

    with pytest.raises(RuntimeError, match="a fault of this program"):
        called(monkeypatch, fails_at, deliver)


def test_a_fault_in_what_is_done_meanwhile_is_told(monkeypatch):
    async def deliver() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        called(monkeypatch, "link", deliver)
