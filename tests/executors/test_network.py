"""What each network error and each HTTP status proves of the effect: a test per row."""

import pytest

from executors.network import (
    CANNOT_REFUSE,
    FAULTS,
    STATUSES,
    Fault,
    proof_of_fault,
    proof_of_status,
    retry_after_s,
)
from ledger.vocabulary import Cause, Meaning

B, R, U = Meaning.NOT_BEGUN, Meaning.REFUSED, Meaning.UNKNOWN

BEFORE_THE_FIRST_BYTE = {
    Fault.NOT_ALLOWED: (Cause.PERMISSION, B),
    Fault.UNFIT_REQUEST: (Cause.VALIDATION, B),
    Fault.NAME_NOT_RESOLVED: (Cause.CONNECT_FAILED, B),
    Fault.CONNECTION_REFUSED: (Cause.CONNECT_FAILED, B),
    Fault.CONNECT_TIMEOUT: (Cause.CONNECT_FAILED, B),
    Fault.UNREACHABLE: (Cause.CONNECT_FAILED, B),
    Fault.TLS_FAILED: (Cause.CONNECT_FAILED, B),
    Fault.WRITE_FAILED: (Cause.CONNECT_FAILED, B),
    Fault.CONNECTION_RESET: (Cause.CONNECT_FAILED, B),
    Fault.CONNECTION_CLOSED: (Cause.CONNECT_FAILED, B),
    Fault.OUT_OF_TIME: (Cause.HANG, B),
    Fault.MALFORMED_ANSWER: (Cause.SERVER_ERROR, U),
    Fault.TOO_MANY_REDIRECTS: (Cause.SERVER_ERROR, U),
}

AFTER_THE_FIRST_BYTE = {
    Fault.NOT_ALLOWED: Cause.PERMISSION,
    Fault.UNFIT_REQUEST: Cause.VALIDATION,
    Fault.NAME_NOT_RESOLVED: Cause.CONNECTION_LOST,
    Fault.CONNECTION_REFUSED: Cause.CONNECTION_LOST,
    Fault.CONNECT_TIMEOUT: Cause.CONNECTION_LOST,
    Fault.UNREACHABLE: Cause.CONNECTION_LOST,
    Fault.TLS_FAILED: Cause.CONNECTION_LOST,
    Fault.WRITE_FAILED: Cause.CONNECTION_LOST,
    Fault.CONNECTION_RESET: Cause.CONNECTION_LOST,
    Fault.CONNECTION_CLOSED: Cause.CONNECTION_LOST,
    Fault.OUT_OF_TIME: Cause.HANG,
    Fault.MALFORMED_ANSWER: Cause.SERVER_ERROR,
    Fault.TOO_MANY_REDIRECTS: Cause.SERVER_ERROR,
}

FIRST_ATTEMPT = {
    400: (Cause.VALIDATION, R),
    401: (Cause.AUTH, R),
    402: (Cause.PERMISSION, R),
    403: (Cause.PERMISSION, R),
    404: (Cause.NOT_FOUND, R),
    405: (Cause.NOT_FOUND, R),
    406: (Cause.VALIDATION, R),
    407: (Cause.AUTH, R),
    408: (Cause.GATEWAY_TIMEOUT, U),
    409: (Cause.CONFLICT, R),
    410: (Cause.NOT_FOUND, R),
    412: (Cause.CONFLICT, R),
    413: (Cause.VALIDATION, R),
    415: (Cause.VALIDATION, R),
    418: (Cause.VALIDATION, R),
    422: (Cause.VALIDATION, R),
    429: (Cause.RATE_LIMITED, R),
    451: (Cause.PERMISSION, R),
    499: (Cause.VALIDATION, R),
    500: (Cause.SERVER_ERROR, U),
    501: (Cause.SERVER_ERROR, U),
    502: (Cause.GATEWAY_TIMEOUT, U),
    503: (Cause.SERVER_ERROR, U),
    504: (Cause.GATEWAY_TIMEOUT, U),
    599: (Cause.SERVER_ERROR, U),
}

UNDECLARED = [100, 202, 206, 299, 300, 301, 302, 303, 304, 307, 308, 600, 999]


@pytest.mark.parametrize("fault", Fault)
def test_before_the_first_byte_a_fault_proves_its_row(fault):
    assert proof_of_fault(fault, handed_over=False) == BEFORE_THE_FIRST_BYTE[fault]


@pytest.mark.parametrize("fault", Fault)
def test_after_the_first_byte_no_fault_proves_anything(fault):
    assert proof_of_fault(fault, handed_over=True) == (AFTER_THE_FIRST_BYTE[fault], U)


@pytest.mark.parametrize("status", FIRST_ATTEMPT)
def test_a_status_on_the_first_attempt_proves_its_row(status):
    assert proof_of_status(status, later_attempt=False) == FIRST_ATTEMPT[status]


def test_every_row_of_the_tables_has_a_test():
    assert set(FAULTS) == set(Fault)
    assert set(STATUSES) <= set(FIRST_ATTEMPT)


@pytest.mark.parametrize("status", sorted(set(FIRST_ATTEMPT) - {409, 412}))
def test_a_later_attempt_changes_no_other_row(status):
    assert proof_of_status(status, later_attempt=True) == FIRST_ATTEMPT[status]


@pytest.mark.parametrize("status", [409, 412])
def test_a_conflict_on_a_later_attempt_may_be_the_echo_of_the_first(status):
    assert proof_of_status(status, later_attempt=True) == (Cause.CONFLICT, U)


@pytest.mark.parametrize("status", UNDECLARED)
def test_an_answer_the_tool_did_not_declare_proves_nothing(status):
    assert proof_of_status(status, later_attempt=False) == (Cause.SERVER_ERROR, U)


@pytest.mark.parametrize("status", [503, 529])
def test_a_status_the_policy_calls_refused_is_a_refusal(status):
    proof = proof_of_status(status, later_attempt=True, refused_statuses=[503, 529])
    assert proof == (Cause.RATE_LIMITED, R)


@pytest.mark.parametrize("status", sorted(CANNOT_REFUSE))
def test_no_policy_makes_a_refusal_of_a_status_whose_sender_cannot_know(status):
    assert proof_of_status(status, later_attempt=False, refused_statuses=[status]).means is U


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
WAITS = {
    "seconds": ({"retry-after": "17"}, 17.0),
    "zero": ({"retry-after": "0"}, 0.0),
    "spaces": ({"retry-after": "  5 "}, 5.0),
    "a date by their clock": (
        {"retry-after": "Wed, 21 Oct 2015 07:29:30 GMT", "date": DATE},
        90.0,
    ),
    "an RFC 850 date": (
        {"retry-after": "Wednesday, 21-Oct-15 07:28:10 GMT", "date": DATE},
        10.0,
    ),
    "a date now": ({"retry-after": DATE, "date": DATE}, 0.0),
    "a date past": ({"retry-after": "Wed, 21 Oct 2015 07:27:59 GMT", "date": DATE}, None),
    "a date without theirs": ({"retry-after": DATE}, None),
    "their date unreadable": ({"retry-after": DATE, "date": "yesterday"}, None),
    "negative": ({"retry-after": "-5"}, None),
    "a fraction": ({"retry-after": "1.5"}, None),
    "other digits": ({"retry-after": "٣"}, None),
    "endless": ({"retry-after": "9" * 400}, None),
    "two values": ({"retry-after": "5, 10"}, None),
    "words": ({"retry-after": "soon"}, None),
    "empty": ({"retry-after": ""}, None),
    "absent": ({}, None),
    "an impossible date": ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT", "date": DATE}, None),
}


@pytest.mark.parametrize(("headers", "wait_s"), WAITS.values(), ids=WAITS)
def test_retry_after_is_read_in_both_forms_and_otherwise_ignored(headers, wait_s):
    assert retry_after_s(headers) == wait_s
