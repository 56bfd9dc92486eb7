"""What an HTTP tool is: the configuration as data, checked when it is read.

The shape is JSON. Every rule that can be checked without a call is checked here, so that a
tool that loads can only fail for reasons that belong to one call. Secrets appear by name.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from executors.contract import JSON
from executors.http.addresses import OutboundRules
from executors.http.conditions import Condition
from executors.http.targets import read_url
from executors.http.templates import authority_of, names_in
from executors.network import CANNOT_REFUSE

USUAL_HEADERS = frozenset(
    {
        "accept",
        "accept-language",
        "api-key",
        "authorization",
        "content-type",
        "if-match",
        "if-none-match",
        "if-unmodified-since",
        "prefer",
        "user-agent",
        "x-api-key",
    }
)
OUR_HEADERS = frozenset(
    {
        "accept-encoding",
        "clearhouse-call",
        "connection",
        "content-length",
        "expect",
        "forwarded",
        "host",
        "idempotency-key",
        "keep-alive",
        "te",
        "traceparent",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that frame the message or that the client sets itself: no tool may."""

OUR_PREFIXES = ("proxy-", "sec-", "x-forwarded-")
HANDLE_IS_URL = "{handle}"


class UnfitConfig(ValueError):
    """The configuration of a tool cannot be used; the message says where and what to do."""


def _a_template(url: str) -> str:
    if url == HANDLE_IS_URL:
        return url
    if names_in(authority_of(url)):
        raise ValueError("a placeholder may not stand in the scheme, host or port")
    names_in(url)
    read_url(authority_of(url))
    if "#" in url:
        raise ValueError("a fragment is never sent; leave it out")
    return url


Url = Annotated[str, AfterValidator(_a_template)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class Secret(_Part):
    """A secret by name; `prefix` goes before its value, for example `Bearer `."""

    name: str = Field(alias="$secret", min_length=1, max_length=128)
    prefix: str = ""


class Allow(_Part):
    """The outbound rules as written; `hosts` defaults to the hosts of the tool's own URLs."""

    hosts: tuple[str, ...] | None = None
    private_hosts: tuple[str, ...] = ()
    schemes: tuple[Literal["http", "https"], ...] = ("https",)
    ports: tuple[Annotated[int, Field(gt=0, lt=65536)], ...] = ()
    headers: tuple[str, ...] = ()


class Poll(_Part):
    """How to ask after a handle. Neither `done` nor `failed`: it is still going on."""

    url: Url
    method: Literal["GET", "POST"] = "GET"
    done: Condition
    failed: Condition | None = None
    result: str | None = Field(default=None, pattern=r"^(/.*)?$")
    after_s: float | None = Field(default=None, gt=0)


class Cancel(_Part):
    """How to ask the outside to end the work behind a handle."""

    url: Url
    method: Literal["DELETE", "POST", "PUT", "PATCH"] = "DELETE"


class Job(_Part):
    """Work that goes on elsewhere: the statuses that say so and where its handle stands.

    `handle` is a JSON pointer into the answer; `handle_header` a header with the address to
    ask, such as Location: then `poll.url` is `{handle}`.
    """

    accepted: tuple[Annotated[int, Field(ge=200, lt=300)], ...] = (202,)
    handle: str | None = Field(default=None, pattern=r"^/")
    handle_header: str | None = None
    expires_in_s: float | None = Field(default=None, gt=0)
    poll: Poll
    cancel: Cancel | None = None

    @model_validator(mode="after")
    def _one_place_for_the_handle(self) -> "Job":
        if (self.handle is None) == (self.handle_header is None):
            raise ValueError("give exactly one of handle and handle_header")
        if "handle" not in names_in(self.poll.url):
            raise ValueError("poll.url does not name {handle}, so it asks after nothing")
        return self


class Probe(_Part):
    """How to ask whether the effect of one call happened.

    `authoritative` says that `did_not_happen` may be believed at all.
    """

    url: Url
    method: Literal["GET", "HEAD"] = "GET"
    happened: Condition
    did_not_happen: Condition | None = None
    in_progress: Condition | None = None
    result: str | None = Field(default=None, pattern=r"^(/.*)?$")
    authoritative: bool = False

    @model_validator(mode="after")
    def _asks_about_this_call(self) -> "Probe":
        if not names_in([self.url, *self.happened.templates]):
            raise ValueError(
                "neither url nor happened names {marker}, {idempotency_key} or an argument, "
                "so the probe would ask about no call in particular"
            )
        return self


class Body(_Part):
    """A JSON or form body with placeholders."""

    template: Any = None
    form: dict[str, Any] | None = None


class HttpTool(_Part):
    """One HTTP tool."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
    url: Url
    headers: dict[str, str | Secret] = Field(default_factory=dict)
    query: dict[str, str | Secret] = Field(default_factory=dict)
    body: Literal["arguments", "none"] | Body = "none"
    allow: Allow = Allow()
    success: tuple[Annotated[int, Field(ge=200, lt=400)], ...] = (200, 201, 204)
    refused_statuses: tuple[Annotated[int, Field(ge=500, lt=600)], ...] = ()
    job: Job | None = None
    probe: Probe | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> "HttpTool":
        _check_headers(self.headers, self.allow.headers)
        names_in([self.headers_as_text, self.query_as_text])
        if CANNOT_REFUSE.intersection(self.refused_statuses):
            raise ValueError(
                "refused_statuses may not name 500, 502 or 504: whoever sends these cannot "
                "know whether the work was done"
            )
        if self.job and set(self.job.accepted) & set(self.success):
            raise ValueError("a status is both in success and in job.accepted; leave it in one")
        if HANDLE_IS_URL in (self.url, self.probe.url if self.probe else ""):
            raise ValueError("only poll and cancel may have the address {handle}")
        return self

    @property
    def headers_as_text(self) -> list[str]:
        return [value for value in self.headers.values() if isinstance(value, str)]

    @property
    def query_as_text(self) -> list[str]:
        return [value for value in self.query.values() if isinstance(value, str)]

    @property
    def rules(self) -> OutboundRules:
        allow = self.allow
        hosts = allow.hosts if allow.hosts is not None else self._own_hosts()
        return OutboundRules(
            hosts=tuple(map(_plain_host, hosts)),
            private_hosts=tuple(map(_plain_host, allow.private_hosts)),
            schemes=allow.schemes,
            ports=allow.ports,
            headers=allow.headers,
        )

    def _own_hosts(self) -> tuple[str, ...]:
        urls = [self.url, self.probe.url if self.probe else None]
        if self.job:
            urls += [self.job.poll.url, self.job.cancel.url if self.job.cancel else None]
        own = [url for url in urls if url and url != HANDLE_IS_URL]
        return tuple(dict.fromkeys(read_url(authority_of(url)).host for url in own))


def load(config: Mapping[str, JSON]) -> HttpTool:
    """Read a tool's configuration; raises UnfitConfig with one sentence per thing to correct."""
    try:
        return HttpTool.model_validate(dict(config))
    except ValidationError as invalid:
        lines = (_line(error) for error in invalid.errors(include_url=False, include_input=False))
        raise UnfitConfig(
            "The configuration of this HTTP tool cannot be used, so nothing was sent. Correct: "
            + "; ".join(lines)
            + "."
        ) from None


def _line(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "the tool"
    return f"{place}: {error['msg'].removeprefix('Value error, ').rstrip('.')}"


def _plain_host(host: str) -> str:
    """A host as `read_url` gives it, so that the two can be compared."""
    return host.strip().lower().strip("[]").removesuffix(".")


def _check_headers(names: Iterable[str], extra: Iterable[str]) -> None:
    listed = USUAL_HEADERS | {name.lower() for name in extra}
    for name in names:
        lower = name.lower()
        if lower in OUR_HEADERS or lower.startswith(OUR_PREFIXES):
            raise ValueError(f"the header {name} is set by the client and may not be set by a tool")
        if lower not in listed:
            raise ValueError(f"the header {name} is not allowed; add it to allow.headers")
