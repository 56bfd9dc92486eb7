"""Traces under generated headers: whatever comes, a call gets a sound trace or none."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from ledger import ids, traces

DIGITS = "0123456789abcdef"


def hexadecimal(length: int) -> st.SearchStrategy[str]:
    return st.text(DIGITS, min_size=length, max_size=length)


SOUND = st.tuples(
    hexadecimal(32).filter(lambda text: set(text) != {"0"}),
    hexadecimal(16).filter(lambda text: set(text) != {"0"}),
    st.integers(0, 255),
)
NEAR = st.lists(
    st.sampled_from(["00", "ff", "cc", "-", "--", "A", "é", " ", "\n", ",", "\x00", "0" * 16])
    | hexadecimal(2) | hexadecimal(16) | hexadecimal(32),
    max_size=9,
).map("".join)  # fmt: skip


@given(st.text() | NEAR | st.tuples(hexadecimal(2), hexadecimal(32), hexadecimal(16),
                                    hexadecimal(2), st.text()).map("-".join))  # fmt: skip
@example("00-" + "0" * 32 + "-" + "0" * 16 + "-00")
def test_whatever_is_sent_what_is_kept_fits_its_column_and_reads_as_itself(header: str) -> None:
    kept = traces.read(header)
    if kept is not None:
        assert re.fullmatch(traces.KEPT[1:-1], kept)
        assert len(kept) == 55
        assert traces.read(kept) == kept
        assert header[3:52] == kept[3:52]


@given(SOUND)
def test_a_sound_header_is_kept_and_each_attempt_is_a_sound_child(
    sound: tuple[str, str, int],
) -> None:
    trace, parent, flags = sound
    kept = traces.read(f"00-{trace}-{parent}-{flags:02x}")
    sent = traces.of_attempt(kept, ids.new())
    assert kept == f"00-{trace}-{parent}-{flags & 3:02x}"
    assert traces.read(sent) == sent
    assert traces.id_of(sent) == traces.id_of(kept) == trace


@given(st.text() | NEAR)
def test_a_header_that_is_sent_twice_is_never_kept(header: str) -> None:
    assert traces.read(f"{header},{header}") is None
