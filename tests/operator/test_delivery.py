"""Messages on their way out: queues, pauses, digests, services that hang or break, and what the stand-by line says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farlink.operator.alerts.message import MOST_SMS, MOST_TOGETHER, Message, sms_of, text_of, type_of
from farlink.operator.alerts.outbox import MOST_WAITING, Outbox
from farlink.operator.alerts.sender import Sender
from farlink.operator.at import pdu
from tests.operator.receiver import Receiver


def message(key: str = "1", kind: str = "raised", words: str = "bundle is down: BUSY", severity: str = "critical") -> Message:
    return Message("camp", kind, key, words.split(":")[0], words, severity, 1783166400.0)


def test_what_waited_goes_out_together_in_order_with_its_times():
    outbox = Outbox(["office"])
    for number in range(MOST_TOGETHER + 5):
        outbox.put(message(str(number), words=f"thing {number}"))
    first = outbox.take("office", 0.0)
    title, body = text_of(first)
    assert title == f"farlink camp: {MOST_TOGETHER} alerts"
    assert body.splitlines()[:2] == ["2026-07-04 12:00:00 UTC: thing 0", "2026-07-04 12:00:00 UTC: thing 1"]
    assert outbox.take("office", 0.0) == [], "one at a time"
    outbox.done("office", "", 1.0)
    assert [one.key for one in outbox.take("office", 1.0)] == [str(MOST_TOGETHER + number) for number in range(5)]


def test_pauses_grow_and_end_when_something_is_up_again():
    outbox = Outbox(["office"])
    outbox.put(message())
    now, tries = 0.0, []
    while now < 3600:
        if outbox.take("office", now):
            tries.append(now)
            outbox.done("office", "no connection", now)
        now += 1.0
    assert tries[:5] == [0.0, 5.0, 15.0, 35.0, 75.0]
    assert tries[-1] - tries[-2] == 600
    assert outbox.failure() == "office: no connection"
    outbox.hurry(now)
    assert outbox.take("office", now)
    outbox.done("office", "", now)
    assert (outbox.failure(), outbox.waiting("office")) == ("", 0)


def test_what_was_not_sent_stays_before_what_came_meanwhile():
    outbox = Outbox(["office"])
    outbox.put(message("1"))
    outbox.put(message("2"))
    assert [one.key for one in outbox.take("office", 0.0)] == ["1", "2"]
    outbox.put(message("3"))
    outbox.done("office", "no connection", 0.0)
    assert [one.key for one in outbox.take("office", 5.0)] == ["1", "2", "3"]


def test_kinds_of_messages():
    assert type_of([message()]) == "failure"
    assert type_of([message(severity="warning"), message(kind="cleared")]) == "warning"
    assert type_of([message(kind="cleared")]) == "success"
    assert text_of([message(kind="cleared")])[0] == "farlink camp: cleared: bundle is down"


@given(st.lists(st.builds(message, words=st.text(max_size=300)), min_size=1, max_size=30))
def test_any_messages_fit_into_a_short_message(messages):
    text = sms_of(messages)
    assert 0 < len(text) <= MOST_SMS
    pdu.submitted("+881600005001", text)


def test_a_short_message_has_the_reason_if_there_is_room():
    assert sms_of([message()]) == "camp 12:00Z bundle is down: BUSY"
    many = [message(words=f"line-{number} is down: {'x' * 60}") for number in range(4)]
    assert sms_of(many) == "camp " + "; ".join(f"12:00Z line-{number} is down" for number in range(4))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("pptffdh"), st.floats(0, 700)), max_size=300))
def test_no_message_is_lost_or_sent_twice_whatever_happens(steps):
    outbox = Outbox(["a", "b"])
    now, number, taken = 0.0, 0, {"a": [], "b": []}
    sent: dict[str, list[str]] = {"a": [], "b": []}
    for what, step_s in steps:
        now += step_s / 10
        if what == "p":
            outbox.put(message(str(number)))
            number += 1
        elif what == "h":
            outbox.hurry(now)
        elif what == "d":
            again = Outbox(["a", "b"])
            again.load(outbox.dump())
            assert [again.waiting(name) for name in "ab"] == [outbox.waiting(name) for name in "ab"]
        else:
            for name in "ab":
                taken[name] = taken[name] or outbox.take(name, now)
                if taken[name] and what == "f":
                    done = outbox.done(name, "no" if name == "b" and number % 2 else "", now)
                    sent[name] += [one.key for one in done]
                    taken[name] = []
    for name in "ab":
        assert sent[name] == [str(at) for at in range(len(sent[name]))], "in order, each once"
        assert len(sent[name]) + outbox.waiting(name) == number
    due = outbox.next_at()
    assert due is None or due <= now + 600


def test_where_too_many_wait_the_oldest_are_left_out_and_counted():
    outbox = Outbox(["office"])
    for number in range(MOST_WAITING + 50):
        outbox.put(message(str(number)))
    (status,) = outbox.status()
    assert (status["waiting"], status["left_out"]) == (MOST_WAITING, 50)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 10_000, '{"office": 1}', '{"office": [{}]}', '{"nobody": []}', "null"])
def test_nonsense_that_was_kept_is_no_message(text):
    outbox = Outbox(["office"])
    outbox.load(text)
    assert outbox.waiting("office") == 0


def run(urls: dict[str, str], act, **options: float) -> object:
    async def main() -> object:
        sender = Sender(urls, **options)
        try:
            return await act(sender)
        finally:
            await sender.close()

    return asyncio.run(main())


def test_a_service_that_hangs_is_given_up_and_the_next_message_goes_out():
    with socket.create_server(("127.0.0.1", 0)) as silent, Receiver() as receiver:
        port = silent.getsockname()[1]
        urls = {"hangs": f"json://127.0.0.1:{port}/?rto=100&cto=100", "works": receiver.url}

        async def act(sender: Sender) -> tuple[str, str, str]:
            first = await sender.send("works", "t", "a", "info")  # the process has started
            # A busy machine may take longer than this to start the process.
            usual_s, sender._limit_s = sender._limit_s, 2.5
            began = time.monotonic()
            hung = await sender.send("hangs", "t", "b", "info")
            assert time.monotonic() - began < 20
            sender._limit_s = usual_s
            assert sender._process is None, "no thread is left that waits for the service"
            return first, hung, await sender.send("works", "t", "c", "info")

        assert run(urls, act) == ("", "not sent within 2.5 s", "")
        assert [one["message"] for _, one in receiver.got] == ["a", "c"]


def test_an_answer_without_end_fills_no_memory():
    def pour(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(bytes(1 << 20))

    with socket.create_server(("127.0.0.1", 0)) as listener, Receiver() as receiver:
        threading.Thread(target=pour, args=(listener,), daemon=True).start()
        urls = {"pours": f"json://127.0.0.1:{listener.getsockname()[1]}/", "works": receiver.url}

        async def act(sender: Sender) -> tuple[str, str, int]:
            said = await sender.send("pours", "t", "a", "info"), await sender.send("works", "t", "b", "info")
            status = Path(f"/proc/{sender._process.pid}/status").read_text()
            return *said, int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1])

        *said, most_kib = run(urls, act)
    assert said == ["the service fails with MemoryError", ""]
    assert most_kib < 600 * 1024


def test_a_process_that_is_killed_is_started_again():
    with Receiver() as receiver:

        async def act(sender: Sender) -> list[str]:
            found = [await sender.send("works", "t", "a", "info")]
            os.kill(sender._process.pid, signal.SIGKILL)
            found += [await sender.send("works", "t", "b", "info") for _ in range(2)]
            return found

        first, second, third = run({"works": receiver.url}, act)
        assert (first, third) == ("", "")
        assert second in ("", "the process that sends has ended")


def test_a_message_that_comes_while_the_idle_process_ends_is_sent_by_the_next_one():
    with Receiver() as receiver:

        async def act(sender: Sender) -> list[str]:
            found = [await sender.send("works", "t", "a", "info")]
            closing = asyncio.create_task(sender.close())
            await asyncio.sleep(0)
            found.append(await sender.send("works", "t", "b", "info"))
            await closing
            return found

        assert run({"works": receiver.url}, act) == ["", ""]


def test_a_process_whose_parent_dies_ends():
    async def act(sender: Sender) -> int:
        await sender.send("none", "t", "a", "info")
        process = sender._process
        process.stdin.close()
        async with asyncio.timeout(20):
            return await process.wait()

    assert run({"none": "nosuch://x"}, act) == 0


def test_without_apprise_it_says_so(monkeypatch, tmp_path):
    (tmp_path / "apprise.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def act(sender: Sender) -> str:
        return await sender.send("x", "t", "a", "info")

    assert "Apprise is not installed" in str(run({"x": "json://127.0.0.1:9"}, act))
