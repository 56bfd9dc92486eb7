"""Where a request came from, as far as one machine may be told from another."""

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """The address; of IPv6 the /64, which one machine may have whole."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((known, 64), strict=False)) if known.version == 6 else address
