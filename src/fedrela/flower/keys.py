"""A node's proof of its identity: a signature by its private key, verified with the public key in the roster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrela.errors import ArgumentError
from fedrela.files import read_plain

LARGEST = 1 << 16  # bytes of a key file
KINDS = "ecdsa (P-256, P-384, P-521) or ed25519, without a pass phrase"


def signer(path: Path) -> Callable[[bytes], bytes]:
    """Return a function that signs with the private key in a file, as written by ``ssh-keygen``."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA384
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(read_plain(path, LARGEST), None)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read: {error.strerror}", argument="key") from None
    except Exception:  # the package raises many kinds
        raise ArgumentError(f"{path}: expected a private key, {KINDS}", argument="key") from None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return lambda data: key.sign(data, ec.ECDSA(SHA384()))
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign
    raise ArgumentError(f"{path}: expected a private key, {KINDS}", argument="key")


def verified(public: str, signature: Any, data: bytes) -> bool:
    """Whether a signature of these data belongs to a public key, given as the text of a ``.pub`` file."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.hashes import SHA384
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    if not isinstance(signature, bytes):
        return False
    try:
        key = load_ssh_public_key(public.encode())
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(SHA384()))
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, data)
        else:
            return False
    except Exception:  # a wrong signature, or an invalid key
        return False
    return True
