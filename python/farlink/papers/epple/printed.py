"""Printed numbers of table 1, and nothing else: the only numbers of this package that are not computed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A row of table 1, digits as printed.

    Attributes
    ----------
    scenario
        First column.
    payload_bytes
        User data of a packet.
    tcp, tcp_theory
        Goodput of TCP, simulated and (in brackets) calculated.
    sr, sr_theory
        Goodput of TCP with selective repeat, simulated and calculated.
    tcp_back, sr_back
        Share of the back channel that acknowledgements take.
    """

    scenario: str
    payload_bytes: int
    tcp: str
    tcp_theory: str
    sr: str
    sr_theory: str
    tcp_back: str
    sr_back: str

    def goodput(self, protocol: str) -> str:
        """Simulated goodput of ``"tcp"`` or ``"sr"``."""
        return self.tcp if protocol == "tcp" else self.sr

    def theory(self, protocol: str) -> str:
        """Calculated goodput."""
        return self.tcp_theory if protocol == "tcp" else self.sr_theory

    def back(self, protocol: str) -> str:
        """Load of the back channel."""
        return self.tcp_back if protocol == "tcp" else self.sr_back


TABLE_1 = (
    Row("AWGN Testbed", 500, "0.9306", "0.9562", "0.8880", "0.8893", "0.0528", "0.1066"),
    Row("AWGN Testbed", 1000, "0.9479", "0.9710", "0.9347", "0.9359", "0.0270", "0.0561"),
    Row("AWGN Testbed", 1500, "0.9347", "0.9735", "0.9479", "0.9501", "0.0181", "0.0379"),
    Row("AWGN KIODO", 500, "0.0174", "0.0874", "0.2712", "0.8893", "0.0528", "0.1065"),
    Row("AWGN KIODO", 1000, "0.0200", "0.0874", "0.2857", "0.9359", "0.0270", "0.0560"),
    Row("AWGN KIODO", 1500, "0.0218", "0.0873", "0.2905", "0.9501", "0.0181", "0.0379"),
    Row("Testbed", 500, "0.8222", "0.9562", "0.8506", "0.8893", "0.0507", "0.1021"),
    Row("Testbed", 1000, "0.7755", "0.9710", "0.8712", "0.9359", "0.0254", "0.0523"),
    Row("Testbed", 1500, "0.7557", "0.9735", "0.8656", "0.9501", "0.0167", "0.0347"),
    Row("ATENAA", 500, "0.8245", "0.9520", "0.8362", "0.8893", "0.0499", "0.1004"),
    Row("ATENAA", 1000, "0.8218", "0.9667", "0.8561", "0.9359", "0.0249", "0.0514"),
    Row("ATENAA", 1500, "0.8163", "0.9692", "0.8531", "0.9501", "0.0164", "0.0341"),
    Row("FASOLT", 500, "0.4944", "0.7706", "0.6291", "0.8893", "0.0428", "0.0875"),
    Row("FASOLT", 1000, "0.0421", "0.7799", "0.6693", "0.9359", "0.0202", "0.0439"),
    Row("FASOLT", 1500, "0.0644", "0.7811", "0.6758", "0.9501", "0.0131", "0.0288"),
    Row("KIODO", 500, "0.0163", "0.0874", "0.1942", "0.8893", "0.0518", "0.1041"),
    Row("KIODO", 1000, "0.0186", "0.0874", "0.1969", "0.9359", "0.0261", "0.0537"),
    Row("KIODO", 1500, "0.0206", "0.0873", "0.1978", "0.9501", "0.0173", "0.0357"),
)

PLACES = ("Testbed", "ATENAA", "FASOLT", "KIODO")


def rows(*scenarios: str) -> list[Row]:
    """The rows of some scenarios, in the order of the table."""
    return [row for row in TABLE_1 if row.scenario in scenarios]
