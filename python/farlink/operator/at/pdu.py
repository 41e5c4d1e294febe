"""Short messages as modems take them in PDU mode: the alphabet of GSM, and SMS-SUBMIT.

References
----------
3GPP TS 23.038, section 6.2.1 (alphabet) and 6.1.2.1 (packing); 3GPP TS 23.040, section 9.2.2.2 (SMS-SUBMIT) and 9.1.2.5
(addresses). Iridium's modems know no other mode (ISU AT Command Reference, version 2.45, section 6.9).
"""

from __future__ import annotations

from farlink.errors import ArgumentError

MOST_CHARACTERS = 160

_ALPHABET = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
_CODES = {letter: code for code, letter in enumerate(_ALPHABET) if letter != "\x1b"}
# Letters of ASCII that take two septets, and what is like them.
_LIKE = str.maketrans("[]{}\\^~|`", "()()/--/'")
_SUBMIT, _INTERNATIONAL, _UNKNOWN = 0x01, 0x91, 0x81


def packed(text: str) -> bytes:
    """A text in septets, each behind the other; letters that the alphabet has not become question marks.

    Examples
    --------
    >>> packed("hellohello").hex()
    'e8329bfd4697d9ec37'
    """
    number = 0
    codes = [_CODES.get(letter, _CODES["?"]) for letter in text.translate(_LIKE)]
    for at, code in enumerate(codes):
        number |= code << (7 * at)
    return number.to_bytes(-(-7 * len(codes) // 8), "little")


def unpacked(content: bytes, length: int) -> str:
    """The text of so many septets.

    Examples
    --------
    >>> unpacked(packed("camp: down"), 10)
    'camp: down'
    """
    number = int.from_bytes(content, "little")
    return "".join(_ALPHABET[(number >> (7 * at)) & 0x7F] for at in range(length))


def is_telephone(number: str) -> bool:
    """Whether a short message can go to a number.

    Examples
    --------
    >>> is_telephone("+46708251358"), is_telephone("*99#"), is_telephone(21 * "1")
    (True, False, False)
    """
    digits = number.removeprefix("+")
    return digits.isascii() and digits.isdigit() and 2 <= len(digits) <= 20


def submitted(number: str, text: str) -> tuple[str, int]:
    """An SMS-SUBMIT in hexadecimal, through the SIM's own service centre, and its length in octets, as ``+CMGS`` wants it.

    Raises
    ------
    ArgumentError
        If the number is none, or the text too long.

    Examples
    --------
    >>> submitted("+46708251358", "hellohello")
    ('0001000B916407281553F800000AE8329BFD4697D9EC37', 22)
    """
    if not is_telephone(number):
        raise ArgumentError(f"{number!r} is no number of a telephone", "give 2 to 20 digits, which may begin with +")
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError(f"a short message of {len(text)} letters", f"give at most {MOST_CHARACTERS}")
    digits, kind = number.removeprefix("+"), _INTERNATIONAL if number.startswith("+") else _UNKNOWN
    head = bytes((_SUBMIT, 0, len(digits), kind)) + _swapped(digits) + bytes((0, 0, len(text)))
    content = head + packed(text)
    return f"00{content.hex().upper()}", len(content)


def read_submitted(pdu: str, length: int) -> tuple[str, str]:
    """Number and text of an SMS-SUBMIT.

    Raises
    ------
    ValueError
        If it is none.

    Examples
    --------
    >>> pdu, length = submitted("+881600005001", "bundle is down")
    >>> read_submitted(pdu, length)
    ('+881600005001', 'bundle is down')
    """
    octets = bytes.fromhex(pdu)
    content = octets[octets[0] + 1 :] if octets else b""
    if len(content) != length or len(content) < 8 or content[0] != _SUBMIT:
        raise ValueError("not an SMS-SUBMIT of this length")
    digits, kind = content[2], content[3]
    at = 4 + -(-digits // 2)
    number = "".join(f"{octet & 15:x}{octet >> 4:x}" for octet in content[4:at])[:digits]
    if len(content) < at + 3 or content[at + 1] != 0 or -(-7 * content[at + 2] // 8) != len(content) - at - 3:
        raise ValueError("not a text in the alphabet of GSM")
    return ("+" if kind == _INTERNATIONAL else "") + number, unpacked(content[at + 3 :], content[at + 2])


def _swapped(digits: str) -> bytes:
    even = digits if len(digits) % 2 == 0 else digits + "f"
    return bytes(int(even[at + 1] + even[at], 16) for at in range(0, len(even), 2))
