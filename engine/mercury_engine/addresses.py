"""Which addresses are on this machine, and why code is not sent to others."""

OWN_NAMES = (".local", ".lan", ".internal", ".home.arpa")


def is_loopback(host: str) -> bool:
    """True if what is sent to this host stays on this machine. A name such as 127.0.0.1.example.com is someone
    else's."""
    import ipaddress  # settings are read at every start, and few have an address

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_own_network(host: str) -> bool:
    """Whether it is on this machine or in a network of the user's own, where nobody is paid for answers."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith(OWN_NAMES)


def is_here(address: str) -> bool:
    """The same for an address such as http://127.0.0.1:8080."""
    from urllib.parse import urlsplit

    try:
        return is_loopback(urlsplit(address).hostname or "")
    except ValueError:
        return False


def why_not(address: str, network: bool) -> str:
    """The reason why code is not sent to this address, "" if it may be. `network`: whether the user allows other
    machines."""
    if is_here(address):
        return ""
    if not network:
        return "is on another machine: set privacy.allow_network = true in your user file to send code there"
    return "" if address.startswith("https:") else "would receive your code unencrypted: use https://"
