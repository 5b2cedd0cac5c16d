"""Certificates for imitated servers."""

import ssl
from collections.abc import Callable
from pathlib import Path

CERTIFICATES = Path(__file__).parents[2] / "mercury_ls/link/certificate"
"""Two that sign themselves, with one key: for this machine, and for models.example."""


def with_tls(name: str = "localhost", *, wants: str = "") -> Callable:
    """What a server wraps its connections in; `wants` is the certificate that clients must show."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem", CERTIFICATES / "key.pem")
    if wants:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CERTIFICATES / f"{wants}.pem")
    return lambda connection: context.wrap_socket(connection, server_side=True)
