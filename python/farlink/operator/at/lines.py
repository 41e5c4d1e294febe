"""Lines of a modem, out of bytes that come in any pieces, in bounded memory."""

from __future__ import annotations

MOST_LINE_BYTES = 512
MOST_TAIL_BYTES = 4096
# More than the longest PIN has: what is cut off at the front of the tail is no part of one that is shown.
_SPARE_BYTES = 64
_ENDS = b"\r\n"


class Lines:
    r"""Cuts bytes into lines, which end with ``\r`` or ``\n``; empty ones are left out, as are bytes of over-long ones.

    Examples
    --------
    >>> lines = Lines()
    >>> [line for byte in b"\r\nOK\r\n0\r" if (line := lines.take(byte)) is not None]
    ['OK', '0']
    """

    def __init__(self) -> None:
        self._line = bytearray()

    def take(self, byte: int) -> str | None:
        """The line that ends with this byte; None if none does. Of an over-long line it is the beginning."""
        if byte not in _ENDS:
            if len(self._line) < MOST_LINE_BYTES:
                self._line.append(byte)
            return None
        line = self._line.decode("latin-1").strip(" \0")
        self._line.clear()
        return line or None

    @property
    def pending(self) -> bytes:
        """The line that has not ended yet."""
        return bytes(self._line)

    def clear(self) -> None:
        """Forget the line that has not ended yet."""
        self._line.clear()


class Tail:
    """The last 4 KB that a modem sent, without the secrets in them."""

    def __init__(self, secrets: tuple[bytes, ...] = ()) -> None:
        self._bytes = bytearray()
        self._secrets = secrets

    def add(self, data: bytes) -> None:
        """Keep the end of these bytes and of those before."""
        most = MOST_TAIL_BYTES + _SPARE_BYTES
        self._bytes += data[-most:]
        del self._bytes[:-most]

    @property
    def content(self) -> bytes:
        """The kept text, 4096 bytes at most; secrets in it are stars."""
        shown = bytes(self._bytes)
        for secret in self._secrets:
            shown = shown.replace(secret, b"*" * len(secret))
        return shown[-MOST_TAIL_BYTES:]
