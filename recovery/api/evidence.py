"""Evidence: one piece with its body. It is put on a file through incidents and calls."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from ledger import evidence, ids
from ledger.api import masks
from ledger.api.auth import KeyOrLogin, reader_of
from recovery.api import decision_shapes

router = Router(tags=["evidence"])


@router.get("/{evidence_id}", auth=KeyOrLogin("calls:read"), response=dict)
def detail(request: HttpRequest, evidence_id: str) -> dict[str, Any]:
    """One piece of evidence with its body: `json` where it is strict JSON, else `base64`.

    Where `truncated`, only the beginning was kept; digest and size are those of the whole. A login
    reads it with secrets masked, an agent's key reads that of its own calls as it came.
    """
    row = evidence.get(
        reader=reader_of(request.auth),  # type: ignore[attr-defined]
        evidence_id=ids.read("evidence", evidence_id),
    )
    shown = decision_shapes.whole_evidence(row)
    return masks.evidence_given_to(request.auth, row.call, shown)  # type: ignore[attr-defined]
