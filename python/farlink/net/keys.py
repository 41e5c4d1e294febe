"""Keys of a host and of those that it trusts, in a folder, by default `~/.config/farlink`."""

from __future__ import annotations

import base64
import os

from farlink.errors import ArgumentError, core_errors


def generate_key(keys: str | os.PathLike[str] | None = None) -> str:
    """Make the key of this host, in a file that only its owner can read, and return the public key.

    Parameters
    ----------
    keys
        Folder of the keys; `~/.config/farlink` by default.

    Raises
    ------
    TransferError
        If there is a key already, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> generate_key(folder) == public_key(folder)
    True
    """
    from farlink import _core

    with core_errors():
        return str(_core.generate_key(folder(keys)))


def public_key(keys: str | os.PathLike[str] | None = None) -> str:
    """Return the public key of this host.

    Raises
    ------
    TransferError
        If there is no key, or others than its owner can read it.
    """
    from farlink import _core

    with core_errors():
        return str(_core.public_key(folder(keys)))


def trust(key: str, name: str, keys: str | os.PathLike[str] | None = None) -> None:
    """Trust a host: its files are received from now on.

    Parameters
    ----------
    key
        Its public key.
    name
        A name for it: letters, digits, `-`, `_` and `.`.
    keys
        Folder of the keys.

    Raises
    ------
    TransferError
        If the key is none, or the name cannot be used.
    """
    from farlink import _core

    with core_errors():
        _core.trust_host(key, name, folder(keys))


def distrust(name: str, keys: str | os.PathLike[str] | None = None) -> bool:
    """Trust a host no more; whether it was trusted."""
    from farlink import _core

    with core_errors():
        return bool(_core.distrust_host(name, folder(keys)))


def trusted(keys: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Names and public keys of the trusted hosts."""
    from farlink import _core

    with core_errors():
        return dict(_core.trusted_hosts(folder(keys)))


def peer_key(peer: str | None, keys: str | os.PathLike[str] | None) -> str:
    """The public key of the peer: of a name, of the only trusted host without one."""
    known = trusted(keys)
    if peer is not None:
        key = known.get(peer, peer)
        if not _is_key(key):
            raise ArgumentError(
                f'"{peer}" is no key, and no trusted host has this name',
                "give a public key, 32 bytes in base64, or a name that farlink trust lists",
            )
        return key
    if len(known) != 1:
        raise ArgumentError(
            f"the peer's key is not given, and {len(known) or 'no'} hosts are trusted",
            "give its key or name, as farlink trust lists them",
        )
    (key,) = known.values()
    return key


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False


def folder(keys: str | os.PathLike[str] | None) -> str | None:
    """The folder of the keys as the extension takes it."""
    return None if keys is None else os.fspath(keys)
