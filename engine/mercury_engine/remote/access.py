"""The way to a server that is behind something: the user's proxy, the certificates of the record, and its headers."""

import ssl
from base64 import b64encode
from urllib.parse import unquote, urlsplit

from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord
from mercury_engine.remote.http import CONNECT_SECONDS, HttpClient, Proxy, ServerSite, site_of
from mercury_engine.remote.keys import headers_of


def client_for(record: ModelRecord, *, connect_seconds: float = CONNECT_SECONDS) -> HttpClient:
    """Connects to nothing yet. `EngineError` says what of the record, or of the environment, cannot be used."""
    site = site_of(record.address)
    return HttpClient(
        record.address,
        headers_of(record),
        connect_seconds=connect_seconds,
        context=_context_of(record, site),
        proxy=proxy_for(site),
    )


def proxy_for(site: ServerSite) -> Proxy | None:
    """As HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say; what is on this machine is reached without."""
    if site.is_loopback:
        return None
    # 30 ms, for servers elsewhere only
    from urllib.request import getproxies_environment, proxy_bypass_environment  # pyright: ignore[reportAttributeAccessIssue]

    proxies = getproxies_environment()
    address = proxies.get(site.scheme) or proxies.get("all", "")
    if not address or proxy_bypass_environment(site.authority, proxies):
        return None
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        parts, host, port = None, "", 0
    if parts is None or not host or parts.scheme != "http":
        raise EngineError(
            f"{site.scheme.upper()}_PROXY is no proxy that can be used: write it as http://HOST:PORT where your editor "
            f"starts, or name {site.host} in NO_PROXY"
        )
    if parts.username is None:
        return Proxy(host, port)
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(host, port, f"Basic {b64encode(login.encode()).decode()}")


def _context_of(record: ModelRecord, site: ServerSite) -> ssl.SSLContext | None:
    """None for what the system trusts, which SSL_CERT_FILE may change."""
    if not (record.ca or record.certificate):
        return None
    if site.scheme != "https":
        raise EngineError(f"{record.address} is not encrypted, so it has no certificates: leave out --ca and --cert")
    path = record.ca
    try:
        context = ssl.create_default_context(cafile=record.ca or None)
        if record.certificate:
            path = " and ".join(filter(None, (record.certificate, record.certificate_key)))
            context.load_cert_chain(record.certificate, record.certificate_key or None, password=lambda: "")
    except OSError as error:
        why = "not that in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        files = "the certificates to trust" if path == record.ca else "a certificate and its key, not encrypted"
        raise EngineError(f"{record.address}: {path} cannot be used ({why}): give files with {files}") from None
    return context
