"""Which texts may serve as identifiers of ours.

Free text, idempotency keys and providers' ids are no identifiers: they are kept exactly as
they came and never normalised (security, section 2, rule 3).
"""

import re

_IDENTIFIER = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)


def is_identifier(text: str) -> bool:
    """True for 1 to 128 characters out of letters, digits and `_.:-`, and nothing else."""
    return _IDENTIFIER.fullmatch(text) is not None
