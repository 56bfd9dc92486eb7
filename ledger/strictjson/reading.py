"""Reading back what PostgreSQL made of a canonical form.

`jsonb` keeps numbers as numeric: it keeps `1.0`, but writes 1e+21 as twenty-two digits without
a fraction. No strict integer is that large, so a large one was a float.
"""

import json

from ledger.strictjson.limits import INTEGER_MAX
from ledger.strictjson.refusals import JSON


def read_jsonb(text: str | bytes) -> JSON:
    """The value whose canonical form was stored, from the text of a `jsonb` column.

    Equal to the stored value, types included; -0.0 comes back as 0.0. Usable as the `loads`
    of the database driver.
    """
    return json.loads(text, parse_int=_number)


def _number(token: str) -> int | float:
    # 2^53 - 1 has 16 digits: what is shorter needs no look.
    if len(token) < 16:
        return int(token)
    number = int(token)
    return number if -INTEGER_MAX <= number <= INTEGER_MAX else float(token)
