"""ModemManager on a bus of its own, and pauses for tests."""

from __future__ import annotations

import pytest

from farlink.operator.lines.modem_manager import line as line_module
from farlink.operator.lines.modem_manager import watch
from tests.operator.modem_manager.world import service_in


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("bus")) as found:
        yield found


@pytest.fixture
def quick(monkeypatch):
    """Pauses of seconds take tenths."""
    for name in ("_GONE_S", "_BUS_EVERY_S", "_AFTER_STATE_S"):
        monkeypatch.setattr(line_module, name, 0.1)
    monkeypatch.setattr(line_module, "SIGNAL_EVERY_S", 0.2)
    monkeypatch.setattr(watch, "_SERVICE_EVERY_S", 0.2)
