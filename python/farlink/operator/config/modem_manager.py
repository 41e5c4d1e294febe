"""Settings of a line of kind ``modemmanager``: its modem and its network."""

from __future__ import annotations

from dataclasses import dataclass

from farlink.operator.interface.settings import InterfaceSettings

MOST_SIGNAL = 100
"""ModemManager tells the signal in percent."""

IP_TYPES = {"ipv4": 1, "ipv6": 2, "ipv4v6": 4}
"""``MMBearerIpFamily`` of ModemManager, by the names that ``mmcli`` has."""


@dataclass(frozen=True)
class ModemManagerSettings:
    """Keys of a line of kind ``modemmanager``.

    Attributes
    ----------
    modem
        A name that stays: ModemManager's ``DeviceIdentifier``, IMEI, ``Device`` or ``Physdev`` (where it is plugged in), or
        the number of its SIM.
    apn
        Of the network; empty for the one that the network or the SIM gives.
    ip_type
        ``ipv4``, ``ipv6`` or ``ipv4v6``; empty for the modem's own.
    user
        For the network's authentication; empty if it wants none.
    roaming
        Whether other networks than that of the SIM may be used.
    configure
        Whether the operator sets a bearer's static addresses.
    dial_limit_s
        How long ``Connect`` may take, in s.
    probes
        Probes over the bearer's interface, whose name is not known before the call; None if the bearer's word is enough.
    """

    modem: str
    apn: str = ""
    ip_type: str = ""
    user: str = ""
    roaming: bool = True
    configure: bool = False
    dial_limit_s: float = 180.0
    probes: InterfaceSettings | None = None

    @property
    def proven_s(self) -> float:
        """So long probes may take until the first one is answered, in s; DHCP may have to give an address first."""
        return 0.0 if self.probes is None else max(30.0, 3 * self.probes.noticed_s)
