"""By which names `farlink bundle serve` may be asked, and by whose pages."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")

from farlink.errors import ArgumentError
from farlink.operator.watch.listen import place_of
from farlink.operator.watch.server import policy_of


@pytest.mark.parametrize(("address", "host"), [("0.0.0.0:9464", "192.168.1.7:9464"), ("[::]:9464", "[fd00::7]:9464")])
def test_a_server_at_all_addresses_may_be_asked_by_each_of_them(address, host):
    """What is refused is told to ask by its address: that has to help."""
    names = policy_of(place_of(address, allow_remote=True)).names
    assert names.has(host)
    assert names.has_origin(f"http://{host}")
    assert not names.has("evil.example:9464")
    assert not names.has_origin("http://evil.example")


def test_an_address_is_the_same_in_each_way_to_write_it():
    assert policy_of(place_of("[0:0::1]:9464", allow_remote=False)).names.has("[::1]:9464")


@pytest.mark.parametrize("name", ["http://dash.example.org", "dash.example.org:443", "a b", ""])
def test_a_name_that_no_request_can_have_is_refused_at_the_start(name):
    with pytest.raises(ArgumentError, match=r"--allow-host .* is no name of a host"):
        policy_of(place_of("127.0.0.1:9464", allow_remote=False), [name])
