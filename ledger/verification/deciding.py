"""What people decide: I36."""

from ledger import permissions
from ledger.verification.settling import words
from ledger.verification.shapes import Check, Invariant
from ledger.verification.standing import stands
from ledger.vocabulary import ResolutionStage

S = ResolutionStage
ENDED = words((S.DECLINED, S.TAKEN_BACK, S.LAPSED, S.OVERTAKEN, S.CARRIED_OUT))
DECIDING = words(permissions.roles_with(permissions.Right.DECIDE))

I36 = Invariant(
    "I36",
    "Resolutions are attributable: a person with the right, grounds, a version, a fresh login.",
    (
        Check(
            "SELECT r.call_id, r.id AS resolution, r.by_name, r.by_roles, r.login_age_s "  # noqa: S608 words of our own
            "FROM resolution r JOIN call c ON c.id = r.call_id "
            "WHERE r.grounds = '' OR r.by_name = '' OR r.decision_version < 1 "
            f"OR NOT r.by_roles && ARRAY[{DECIDING}]::varchar[] "
            f"OR c.recovery_class = 'side_effect' AND r.login_age_s > {permissions.FRESH_LOGIN_S}"
        ),
        # Whatever a person moves whose effect was possible, a resolution carries; to end the
        # machine's turn decides nothing.
        Check(
            "SELECT e.call_id, e.seq, e.kind, e.actor_id FROM chain e WHERE e.actor = 'operator' "
            "AND (e.from_state IN ('interrupted', 'ambiguous') AND e.to_state <> e.from_state "
            "AND e.was_effect = 'possible' AND e.kind <> 'escalated' OR e.kind = 'corrected') "
            "AND NOT EXISTS (SELECT FROM resolution r "
            "JOIN recovery_resolutionevent v ON v.resolution_id = r.id "
            "AND v.kind = 'carried_out' AND v.event_seq = e.seq WHERE r.call_id = e.call_id)"
        ),
        Check(
            "SELECT r.call_id, r.id AS resolution, r.by_name FROM resolution r "
            "JOIN recovery_resolutionevent v ON v.resolution_id = r.id AND v.kind = 'carried_out' "
            "WHERE r.needs_second_person AND NOT EXISTS (SELECT FROM recovery_resolutionevent a "
            "WHERE a.resolution_id = r.id AND a.kind = 'approved' AND a.by_id <> r.by_id "
            "AND a.at <= v.at)"
        ),
        # What is neither ended nor waits on its incident would never be carried out.
        Check(
            "SELECT r.call_id, r.id AS resolution, r.answer FROM resolution r "  # noqa: S608 words of our own
            "WHERE NOT EXISTS (SELECT FROM recovery_resolutionevent v WHERE v.resolution_id = r.id "
            f"AND v.kind IN ({ENDED})) AND NOT EXISTS (SELECT FROM incident i "
            "WHERE i.pending_id = r.id AND i.pending_until IS NOT NULL)"
        ),
        stands(
            [
                ("recovery_resolutionevent", "resolution_ends_once"),
                ("recovery_resolution", "resolution_has_grounds"),
                ("recovery_incident", "pending_has_its_date"),
            ]
        ),
    ),
)
