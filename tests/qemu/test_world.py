"""What a pppd's messages tell of its link, without a guest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.qemu.ppp_world import why_left

UP = "Using interface ppp0\nNew bundle ppp0 created\n"
ATTACHED = "Using interface ppp0\nLink attached to ppp0\n"
GIVEN_UP = "No response to 3 echo-requests\nSerial link appears to be disconnected.\n"


def phone(log: str, *, lives: bool = True) -> Any:
    return SimpleNamespace(at=0, lives=lives, end=SimpleNamespace(log=lambda _: log))


@pytest.mark.parametrize(
    ("log", "lives", "why"),
    [
        (UP, True, None),
        (ATTACHED, True, None),
        # It asks the far end for the end of the link, and is in the bundle until it is done with that.
        (ATTACHED + GIVEN_UP, True, None),
        (ATTACHED + GIVEN_UP + "Link terminated.\n", False, "No response to 3 echo-requests"),
        # The owner lives on without its link.
        (UP + GIVEN_UP + "Link terminated.\n", True, "No response to 3 echo-requests"),
        (UP + "Modem hangup\n", True, "Modem hangup"),
        (UP, False, "pppd has ended"),
        (UP + GIVEN_UP + "Link terminated.\n" + ATTACHED, True, None),
    ],
)
def test_a_link_that_pppd_has_given_up_is_out_of_the_bundle_whatever_carrier_and_process_say(log, lives, why):
    assert why_left(phone(log, lives=lives)) == why
