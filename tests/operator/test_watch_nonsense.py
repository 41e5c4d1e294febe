"""An operator that says nonsense, as one of another version may: who watches it says so, and goes on with the others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from farlink.operator.watch import metrics
from farlink.operator.watch.listen import Place
from farlink.operator.watch.source import Source
from tests.operator.watched import Told, bundle_in, status_of


@pytest.fixture
def source(tmp_path):
    return Told(bundle_in(tmp_path))


def asked_of(source: Told, path: str) -> tuple[int, dict[str, Any]]:
    """Status and body that the API answers, asked over no network."""
    httpx = pytest.importorskip("httpx")
    from farlink.operator.watch.api import application
    from farlink.operator.watch.server import policy_of

    async def ask() -> Any:
        transport = httpx.ASGITransport(
            application([source], policy_of(Place(path=Path("camp.http")))), raise_app_exceptions=False
        )
        async with httpx.AsyncClient(transport=transport, base_url="http://camp") as client:
            return await client.get(path)

    answer = asyncio.run(ask())
    return answer.status_code, answer.json()


@pytest.mark.parametrize("said", [{}, {"lines": 7}, {"lines": [7]}, {"lines": [{"state": "up"}]}, {"lines": None, "alerts": 7}])
@pytest.mark.parametrize("path", ["", "/lines", "/lines/kansas"])
def test_an_operator_that_says_what_is_not_understood_is_503_with_a_remedy(source, said, path):
    source.said = said
    status, body = asked_of(source, f"/v1/bundles/camp{path}")
    assert (status, set(body)) == (503, {"error", "remedy"})


def test_an_error_of_the_program_is_a_problem_with_a_remedy_and_tells_nothing(source, monkeypatch):
    def fail() -> None:
        raise LookupError("a secret")

    monkeypatch.setattr(source, "status", fail)
    status, body = asked_of(source, "/v1/bundles/camp")
    assert (status, set(body)) == (500, {"error", "remedy"})
    assert "secret" not in str(body)


NONSENSE = (
    *(b"{}\n", b"[]\n", b"7\n", b"no JSON\n", b'{"answer": 7}\n', b'{"answer": [[1, 2]]}\n', b'{"error": "x"}\n'),
    *(b'{"error": 5, "remedy": null}\n', b"\xff\n", b"[" * 50_000 + b"\n", b'{"answer": {}}', b""),
)


@pytest.mark.parametrize("said", NONSENSE)
def test_nonsense_of_one_operator_takes_no_metrics_of_others(tmp_path, said):
    """Whoever listens at the socket says it: all metrics are made in one request."""
    listener = socket.socket(socket.AF_UNIX)
    with listener, contextlib.chdir(tmp_path):
        listener.bind("odd.journal.sock")
        listener.listen()
        threading.Thread(target=answer_once, args=(listener, said), daemon=True).start()
        other = Told(bundle_in(tmp_path))
        other.said = status_of()
        text = metrics.text_of(metrics.registry_of([Source(bundle_in(tmp_path, "odd")), other])).decode()
    assert 'farlink_operator_reachable{bundle="odd"} 0.0' in text
    assert 'farlink_operator_reachable{bundle="camp"} 1.0' in text


def answer_once(listener: socket.socket, said: bytes) -> None:
    asking, _ = listener.accept()
    with asking:
        asking.recv(65536)
        asking.sendall(said)
