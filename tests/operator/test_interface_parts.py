"""The parts of a line over an interface, without sockets: netlink, probes, what they prove and what they cost."""

from __future__ import annotations

import asyncio
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farlink.operator.interface import echo, netlink, peer_message
from farlink.operator.interface.answering import _MOST_SESSIONS, MOST_ANSWERS_PER_S, Answerer
from farlink.operator.interface.asking import Asker
from farlink.operator.interface.default_route import LAST_RESORT, PROTOCOL, changes, wanted
from farlink.operator.interface.evidence import Evidence
from farlink.operator.interface.netlink import Route
from farlink.operator.interface.pace import Pace
from farlink.operator.interface.peer_message import PeerMessage, parsed
from farlink.operator.interface.settings import DAY_S, InterfaceSettings, host_and_port
from farlink.operator.interface.sockets import resolved
from farlink.operator.interface.table import Table
from tests.operator import kernel

SENDER = ("192.0.2.1", 40000)


def test_a_table_knows_what_the_kernel_has_said():
    table = Table()
    request = table.poll_output()
    assert request
    assert not table.poll_output(), "one at a time"
    table.feed(kernel.link(2, "eth1") + kernel.link(3, "eth2", kernel.UP))
    while request:
        table.feed(kernel.done(struct.unpack_from("=I", request, 8)[0]))
        request = table.poll_output()
    table.feed(kernel.address(2, "192.0.2.7/24") + kernel.address(2, "fe80::1/64") + kernel.address(2, "2001:db8::1/64", 0x40))
    table.feed(kernel.route(2, "192.0.2.1", 100) + kernel.route(2, "192.0.2.9", 50))

    assert table.is_known
    assert (table.link("eth1").has_carrier, table.link("eth2").has_carrier, table.link("eth3")) == (True, False, None)
    assert table.addresses(2) == ("192.0.2.7/24",), "one that is still checked, or of the link only, is none"
    assert [one.gateway for one in table.routes(2)] == ["192.0.2.9", "192.0.2.1"]
    table.feed(kernel.address(2, "192.0.2.7/24", is_gone=True) + kernel.link(2, "eth1", is_gone=True))
    assert (table.link("eth1"), table.addresses(2), table.routes(2)) == (None, (), ())


def test_what_was_lost_is_asked_for_again_and_what_is_gone_meanwhile_goes():
    table = Table()
    while request := table.poll_output():
        table.feed(kernel.done(struct.unpack_from("=I", request, 8)[0]))
    table.feed(kernel.link(2, "eth1") + kernel.address(2, "192.0.2.7/24"))

    table.lost()
    for content in (kernel.link(2, "eth1"), kernel.address(2, "192.0.2.8/24"), b""):
        request = table.poll_output()
        table.feed(content + kernel.done(struct.unpack_from("=I", request, 8)[0]))

    assert table.addresses(2) == ("192.0.2.8/24",)


def test_a_request_that_is_refused_takes_nothing_away():
    table = Table()
    while request := table.poll_output():
        table.feed(kernel.done(struct.unpack_from("=I", request, 8)[0]))
    table.feed(kernel.link(2, "eth1") + kernel.address(2, "192.0.2.7/24"))
    table.lost()
    while request := table.poll_output():
        sequence = struct.unpack_from("=I", request, 8)[0]
        table.feed(kernel.message(netlink.ERROR, struct.pack("=i", -16) + request[:16], sequence))
    assert table.addresses(table.link("eth1").index) == ("192.0.2.7/24",)


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=8))
def test_no_datagram_ends_the_parser(noise, flips):
    list(netlink.messages(noise))
    whole = bytearray(kernel.link(2, "eth1") + kernel.address(2, "192.0.2.7/24") + kernel.route(2, "192.0.2.1", 7))
    for at, byte in flips:
        whole[at % len(whole)] = byte
    table = Table()
    table.feed(bytes(whole))
    table.addresses(2)
    table.routes(2)


def test_an_echo_is_answered_by_its_own_answer_only():
    nonce = bytes(range(16))
    request = echo.request(4, 7, 3, nonce)
    total = sum(struct.unpack("!12H", request))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF
    assert len(request) == echo.BYTES
    reply = b"\0" + request[1:]
    assert echo.answered(4, reply, nonce) == 3
    assert echo.answered(4, bytes((0x45, *bytes(19))) + reply, nonce, has_ip_header=True) == 3
    assert echo.answered(4, request, nonce) is None
    assert echo.answered(4, reply, bytes(16)) is None
    assert echo.answered(6, b"\x81" + echo.request(6, 7, 9, nonce)[1:], nonce) == 9


@given(st.binary(max_size=64), st.integers(4, 6).filter(lambda version: version != 5), st.booleans())
def test_no_packet_ends_the_parsers_of_probes(noise, version, has_header):
    echo.answered(version, noise, bytes(16), has_ip_header=has_header)
    parsed(noise)
    parsed(b"FLp1" + noise.ljust(36, b"\0")[:36])
    Answerer(Evidence(), b"s").feed(noise, SENDER, 0.0)
    Asker(Evidence(), 1).feed(noise, 0.0)


def exchange(asker: Asker, answerer: Answerer, now_s: float, *, outward: bool = True, inward: bool = True) -> None:
    data = asker.probe(now_s, 1.0)
    answer = answerer.feed(data, SENDER, now_s + 0.2) if outward else None
    unasked = [one for one, _ in answerer.due(now_s + 0.2)]
    for one in [answer, *unasked] if answer else unasked:
        if inward:
            asker.feed(one, now_s + 0.5)


def test_each_end_knows_of_each_way():
    near, far = Evidence(), Evidence()
    asker, answerer = Asker(near, 7), Answerer(far, b"secret")
    for at in range(5):
        exchange(asker, answerer, float(at))
    assert (near.outward_s, near.round_trip_s) == (4.0, pytest.approx(0.5))
    assert (far.outward_s, far.inward_s) == (pytest.approx(3.2), pytest.approx(3.7)), "of what the near end has answered"

    for at in range(5, 15):
        exchange(asker, answerer, float(at), outward=False)
    assert near.outward_s == 4.0, "nothing got there"
    assert near.inward_s > 13.0, "but the far end says so"
    for at in range(15, 25):
        exchange(asker, answerer, float(at), inward=False)
    assert near.inward_s < 15.0
    assert far.inward_s > 23.0
    assert far.outward_s < 15.0


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(0, 2**64 - 1))
def test_nothing_is_proven_that_did_not_get_through(order, session):
    """Whatever is late, lost or twice: no proof is newer than the last message that arrived."""
    near, far = Evidence(), Evidence()
    asker, answerer = Asker(near, session), Answerer(far, b"secret")
    under_way: list[tuple[bytes, float]] = []
    arrived_s = -1.0
    for now, at in enumerate(order):
        under_way.append((asker.probe(float(now), 1.0), float(now)))
        if at < len(under_way):
            data, sent_s = under_way[at]
            answer = answerer.feed(data, SENDER, now + 0.5)
            arrived_s = max(arrived_s, sent_s)
            if answer is not None and at % 3:
                asker.feed(answer, now + 0.9)
    assert near.outward_s is None or near.outward_s <= arrived_s


def test_a_stranger_gets_no_more_bytes_than_it_has_sent():
    """With a forged address nobody gets a message unasked, nor a longer one, and no memory is taken."""
    rng = random.Random(1)
    answerer = Answerer(Evidence(), b"secret")
    sent = got = 0
    for at in range(500):
        data = PeerMessage(False, 0.0, rng.randrange(2**64), rng.randbytes(8), 1 + at, 0, 0.0).packed()
        sent += len(data)
        got += len(answerer.feed(data, (f"192.0.2.{at % 250}", at), at * 0.1) or b"")
        got += sum(len(one) for one, _ in answerer.due(at * 0.1))
    assert 0 < got <= sent
    assert not answerer._sessions
    assert answerer.next_s == float("inf")


def test_a_flood_is_answered_at_a_limited_rate_and_few_sessions_are_kept():
    answerer = Answerer(Evidence(), b"secret")
    answers = 0
    for at in range(10_000):
        data = PeerMessage(False, 1.0, at, bytes(8), 1, 0, 0.0).packed()
        answers += answerer.feed(data, SENDER, at * 1e-4) is not None
    assert answers <= 2 * MOST_ANSWERS_PER_S
    assert answerer.refused == 10_000 - answers
    for at in range(200):
        first = answerer.feed(PeerMessage(False, 1.0, at, bytes(8), 1, 0, 0.0).packed(), SENDER, 10.0 + at)
        answerer.feed(PeerMessage(False, 1.0, at, parsed(first).token, 2, 0, 0.0).packed(), SENDER, 10.0 + at)
    assert len(answerer._sessions) == _MOST_SESSIONS
    unasked = sum(len(answerer.due(300.0 + at)) for at in range(100))
    assert unasked <= 20 * _MOST_SESSIONS, "they stop when nobody comes back"


def test_an_answer_from_another_session_proves_nothing():
    near = Evidence()
    asker = Asker(near, 7)
    asker.probe(0.0, 1.0)
    forged = PeerMessage(True, 1.0, 8, bytes(8), 1, 1, 0.0).packed()
    assert not asker.feed(forged, 0.1)
    assert near.outward_s is None
    assert len(forged) == peer_message.BYTES


def test_a_far_end_that_was_started_anew_is_understood():
    near = Evidence()
    asker = Asker(near, 7)
    for start in range(2):
        answerer = Answerer(Evidence(), b"secret %d" % start)
        for at in range(5):
            exchange(asker, answerer, 10.0 * start + at)
        assert near.age_s(10.0 * start + 5) < 2


def test_a_day_of_probes_stays_within_its_budget():
    settings = InterfaceSettings("eth1", probe=("192.0.2.1",), noticed_s=60.0, probe_bytes_per_day=300_000)
    pace = Pace(settings)
    now_s, sent = 20_000 * DAY_S + 5 * 3600, 0
    rng = random.Random(3)
    while now_s < 20_001 * DAY_S:
        sent += settings.probe_bytes
        pace.spend(settings.probe_bytes, now_s)
        assert pace.bytes_today == sent
        # Probes that are suspect make more of them.
        now_s += min(1e5, pace.interval_s(now_s)) if rng.random() < 0.7 else 0.2
    assert settings.interval_s == 20
    assert 250_000 < sent <= 300_000
    assert pace.interval_s(now_s) < 40, "the next day has its own"


def test_a_spent_budget_is_no_dead_line():
    settings = InterfaceSettings("eth1", probe=("192.0.2.1",), noticed_s=600.0, probe_bytes_per_day=88)
    pace = Pace(settings)
    assert not pace.is_spent(0.0)
    pace.spend(88, 0.0)
    assert pace.is_spent(0.0)
    assert not pace.is_spent(DAY_S)


def test_a_clock_that_is_set_back_gives_no_budget_anew():
    pace = Pace(InterfaceSettings("eth1", probe=("192.0.2.1",), noticed_s=600.0, probe_bytes_per_day=200))
    pace.spend(176, 20 * DAY_S)
    for day in (21, 19, *range(22, 60)):
        pace.spend(88, day * DAY_S)
        assert not pace.is_spent(day * DAY_S)
        assert pace.is_spent(20 * DAY_S) or day > 30, "few days are remembered"
    pace.spend(88, 59 * DAY_S)
    assert pace.is_spent(59 * DAY_S)


def test_a_dead_line_is_given_up_before_its_time_is_over():
    for noticed_s in (0.5, 3.0, 60.0):
        pace = Pace(InterfaceSettings("eth1", probe=("192.0.2.1",), noticed_s=noticed_s))
        assert 0.9 * noticed_s < pace.noticed_s(0.0) < noticed_s


def test_routes_follow_the_line():
    settings = InterfaceSettings("eth1", route=True)
    dhcp = Route(2, "192.0.2.1", 1024, 16)
    assert wanted(settings, 10, 2, [dhcp], is_up=True) == {Route(2, "192.0.2.1", 10, PROTOCOL)}
    assert wanted(settings, 10, 2, [dhcp], is_up=False) == set()
    assert wanted(InterfaceSettings("eth1"), 10, 2, [dhcp], is_up=True) == set()
    own = InterfaceSettings("eth1", route=True, gateway="192.0.2.9")
    last = Route(2, "192.0.2.9", LAST_RESORT + 10, PROTOCOL)
    assert wanted(own, 10, 2, [], is_up=False) == {last}
    assert wanted(own, 10, 2, [], is_up=True) == {last, Route(2, "192.0.2.9", 10, PROTOCOL)}

    left = Route(2, "192.0.2.7", 11, PROTOCOL)
    assert changes({last}, [dhcp, left]) == [(last, True), (left, False)], "another's route stays"


NO_PEERS = ["far", "far:", ":7411", "far:0", "far:65536", "far:x", "far:²", "2001:db8::1:7411", "[far]:1", ""]


@pytest.mark.parametrize("text", NO_PEERS)
def test_what_is_no_host_and_port(text):
    with pytest.raises(ValueError, match=r"."):
        host_and_port(text)


def test_a_name_that_cannot_be_looked_up_is_an_error_as_others_are():
    """Python says so by another exception, which would end the opening of all targets behind it."""
    with pytest.raises(OSError, match="no name of a host"):
        asyncio.run(resolved("far..example", 1, {4}))
