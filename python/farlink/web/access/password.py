"""The password's file: only a hash of it (scrypt) is kept, in a file that only its owner may read."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from pathlib import Path

from farlink.errors import OperatorError, OutputError
from farlink.output import whole_file
from farlink.untrusted import read_text

SHORTEST = 12
"""Letters of a password."""

LONGEST = 200

# Of scrypt (RFC 7914): 32 MB and 0.2 s for each try, as OWASP's cheat sheet of password storage advises.
_N, _R, _P = 2**15, 8, 3
_MEMORY_BYTES = 128 * _R * (_N + _P) + (1 << 20)
_SALT_BYTES = 16


def default_file() -> Path:
    """Where the password's file is unless another one is named."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "farlink" / "web-password.json"


def write(path: Path, password: str) -> None:
    """Set the password.

    Raises
    ------
    OperatorError
        If it is too short or too long.
    OutputError
        If the file cannot be written.
    """
    if not SHORTEST <= len(password) <= LONGEST:
        raise OperatorError(f"the password has {len(password)} letters", f"give {SHORTEST} to {LONGEST}")
    salt = secrets.token_bytes(_SALT_BYTES)
    kept = {"scrypt": [_N, _R, _P], "salt": salt.hex(), "hash": _hash(password, salt, _N, _R, _P).hex()}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {path.parent}: {error.strerror}", "name another place with --password-file") from error
    with whole_file(path, mode=0o600) as temporary:
        temporary.write_text(json.dumps(kept) + "\n", encoding="ascii")


def check_file(path: Path) -> None:
    """Refuse a file that holds no hash of a password, or that others may read.

    Raises
    ------
    OperatorError
        Names the file and what is wrong.
    """
    _read(path)


def is_right(path: Path, password: str) -> bool:
    """Whether a password is the one. Takes 0.2 s and 32 MB.

    Raises
    ------
    OperatorError
        If the file cannot be used.
    """
    numbers, salt, kept = _read(path)
    return len(password) <= LONGEST and hmac.compare_digest(_hash(password, salt, *numbers), kept)


def _read(path: Path) -> tuple[tuple[int, int, int], bytes, bytes]:
    remedy = "write it anew: farlink web --set-password"
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = read_text(path, OperatorError)
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"the password's file {path} cannot be read", remedy) from error
    if mode & 0o077:
        raise OperatorError(f"others may read or write the password's file {path} (mode {mode:04o})", f"chmod 600 {path}")
    try:
        kept = json.loads(text)
        n, r, p = (int(number) for number in kept["scrypt"])
        salt, hashed = bytes.fromhex(kept["salt"]), bytes.fromhex(kept["hash"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OperatorError(f"the password's file {path} is damaged", remedy) from error
    if (n, r, p) != (_N, _R, _P) or len(salt) != _SALT_BYTES or len(hashed) != 32:
        raise OperatorError(f"the password's file {path} has other parameters than this farlink writes", remedy)
    return (n, r, p), salt, hashed


def _hash(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "surrogatepass"), salt=salt, n=n, r=r, p=p, maxmem=_MEMORY_BYTES, dklen=32)
