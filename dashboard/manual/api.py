"""`api.md`: every operation and its shapes, from the OpenAPI document that the API serves."""

import json
from collections.abc import Iterator
from typing import Any

from django.urls import resolve, reverse

from dashboard.manual.markdown import code, plain, table
from ledger import ids, keys
from ledger.api import pages
from ledger.strictjson import API, TRANSCRIPT

JSON = Any  # a JSON value of the OpenAPI document

HEAD = """# API

All operations are below `/api/v1/`. The same as an OpenAPI document: `/api/v1/openapi.json`; as a
page to try: `/api/v1/docs`.

**Who asks.** An agent sends its key as `Authorization: Bearer clh_…`, and nowhere else: a key in
the address or in a cookie is refused. A person comes with a login; a change by a login needs the
CSRF token in `X-CSRFToken`. No key changes a tool or a policy.

Scopes of a key: {scopes}. A new agent key has {agent_scopes}.

**Bodies** are strict JSON in UTF-8, at most {size} bytes, {depth} levels deep; those that bring a
transcript, at most {large} bytes, {deep} levels. Unknown members are ignored, wrong types are not
converted. **Ids** carry their kind: {ids}. **Instants** are RFC 3339 in UTC, durations are
seconds. **Lists** give `items` and `next_cursor`; a cursor is bound to the
filters of its list, `limit` is at most {limit}. **Refusals** are problem documents:
[errors](errors.md). Every answer has `X-Request-Id`.

**Repeating.** `Idempotency-Key` names an intent for one agent. The same key with the same arguments
gives the same call, with `Idempotent-Replayed: true`; with other arguments it answers 409
[`key_reused`](errors.md#key_reused). In a batch the header names each call by its place: `key:0`,
`key:1`. Without a key, a call of a session is named by its turn, model step, position and tool call
id. Every operation that lists the header answers a repetition like the first request; one that does
not may be repeated as it is.

**Waiting.** `?wait=25` (0 to 30 seconds) on submit and fetch holds the answer until the call is
settled or waits for a person. `ETag` changes with each event; `If-None-Match` gives 304.

**Quotas.** Each answer says in `RateLimit-Policy` which quotas the request spent from, and in
`RateLimit` what is left of them (draft-ietf-httpapi-ratelimit-headers). A key has quotas of four
kinds: `calls` (submits, and each call of a batch or reply), `polls` (looks at one call), `acts`
(cancellations, interruptions, ends of turns; a person's changes) and `requests` (all else). What is
spent of one is not missing in another. All but acts spend from their `workspace`'s too. A spent
quota answers 429 [`rate_limited`](errors.md#rate_limited) with `Retry-After`, before anything was
recorded. How large they are: [settings](settings.md).
"""


def page() -> str:
    """The whole page."""
    document = _document()
    shapes = document["components"]["schemas"]
    parts = [_head(), *_operations(document["paths"]), "## Shapes\n"]
    return "\n".join([*parts, *(_shape(name, shapes[name]) for name in sorted(shapes))])


def _document() -> dict[str, JSON]:
    """The OpenAPI document as it is served, plain JSON."""
    # The view carries the API object, so nothing above this layer is imported.
    view = resolve(reverse("api:openapi-json"))
    schema = view.func.keywords["api"].get_openapi_schema()  # type: ignore[attr-defined]
    document: dict[str, JSON] = json.loads(json.dumps(schema, default=str))
    for methods in document["paths"].values():
        for operation in methods.values():
            _spell_out(operation, document["components"])
    return document


def _spell_out(operation: dict[str, JSON], components: dict[str, JSON]) -> None:
    """Put the parameters and answers that operations share where they are only named."""
    parameters, responses = operation["parameters"], operation["responses"]
    operation["parameters"] = [_part(each, components) for each in parameters]
    operation["responses"] = {key: _part(each, components) for key, each in responses.items()}


def _part(part: dict[str, JSON], components: dict[str, JSON]) -> dict[str, JSON]:
    *_, kind, name = part.get("$ref", "//").split("/")
    found: dict[str, JSON] = components[kind][name] if kind else part
    return found


def _head() -> str:
    kinds = ", ".join(f"`{prefix}_…` ({noun})" for noun, prefix in ids.KINDS.items())
    listed = ", ".join(map(code, keys.SCOPES))
    return HEAD.format(
        scopes=listed, agent_scopes=", ".join(map(code, keys.AGENT_SCOPES)), ids=kinds,
        size=API.size_bytes, depth=API.depth, large=TRANSCRIPT.size_bytes,
        deep=TRANSCRIPT.depth, limit=pages.LIMIT_MAX,
    )  # fmt: skip


def _operations(paths: dict[str, JSON]) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, methods in paths.items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method.upper(), path, operation))
    for tag, texts in by_tag.items():
        yield f"## {tag.capitalize()}\n"
        yield from texts


def _operation(method: str, path: str, operation: dict[str, JSON]) -> str:
    rows = [
        (code(each["name"]), each["in"], _type(each["schema"]), _default(each["schema"]))
        for each in operation["parameters"]
    ]
    lines = [f"### {method} {path}", "", _paragraphs(operation), ""]
    lines += [f"Who: {_who(operation)}. Answers: {_answers(operation)}.", ""]
    lines += [table(("Parameter", "In", "Type", "Default"), rows)] if rows else []
    lines += [f"Body: {_body(operation)}.", ""] if "requestBody" in operation else []
    return "\n".join(lines)


def _paragraphs(operation: dict[str, JSON]) -> str:
    text: str = operation.get("description") or operation["summary"]
    return "\n\n".join(plain(each) for each in text.split("\n\n"))


def _who(operation: dict[str, JSON]) -> str:
    names = [name for each in operation.get("security", []) for name in each]
    return " or ".join(dict.fromkeys(map(_asker, names))) or "everybody"


def _asker(scheme: str) -> str:
    return "an agent's key" if "Key" in scheme else "a person's login"


def _answers(operation: dict[str, JSON]) -> str:
    return ", ".join(
        f"{status} {_content(answer)}".strip() for status, answer in operation["responses"].items()
    )


def _body(operation: dict[str, JSON]) -> str:
    return _content(operation["requestBody"])


def _content(part: dict[str, JSON]) -> str:
    schemas = [each["schema"] for each in part.get("content", {}).values() if "schema" in each]
    return _type(schemas[0]) if schemas else ""


def _type(schema: dict[str, JSON]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[key]))
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    if "const" in schema:
        return code(schema["const"])
    if schema.get("title") in SUBMITTED:
        return f"[{schema['title']}](#{schema['title'].lower()})"
    if schema.get("type") == "array":
        return f"array of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any")) + _bounds(schema)


SUBMITTED = ("SubmitIn", "BatchIn")
BOUNDS = {"minLength": "at least {} characters", "maxLength": "at most {} characters",
          "minimum": "from {}", "maximum": "to {}"}  # fmt: skip


def _bounds(schema: dict[str, JSON]) -> str:
    said = [text.format(schema[name]) for name, text in BOUNDS.items() if name in schema]
    return f" ({', '.join(said)})" if said else ""


def _default(schema: dict[str, JSON]) -> str:
    return code(json.dumps(schema["default"])) if "default" in schema else ""


def _shape(name: str, schema: dict[str, JSON]) -> str:
    required = schema.get("required", [])
    rows = [
        (code(member), _type(each), "yes" if member in required else "", _default(each))
        for member, each in schema.get("properties", {}).items()
    ]
    members = table(("Member", "Type", "Required", "Default"), rows)
    return f"### {name}\n\n{plain(schema.get('description', ''))}\n\n{members}"
