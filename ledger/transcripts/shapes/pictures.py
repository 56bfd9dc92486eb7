"""Images, as each format writes them: what can be carried from one to another is, the rest is told.

A picture is recognised by its own form, never by the name of the format it came from. One that a
provider cannot take (an uploaded file's id, a bucket's address) becomes a fixed text in its
place, so that the message keeps its sense and two renderings are equal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.transcripts.neutral import Opaque

LEFT_OUT = "[An attachment stood here that this provider cannot be sent.]"


@dataclass(frozen=True, slots=True)
class Picture:
    """Either its bytes in base64 with their media type, or the address that it is fetched from."""

    media_type: str = ""
    base64: str = ""
    url: str = ""

    @property
    def address(self) -> str:
        """One address for both kinds (RFC 2397)."""
        return self.url or f"data:{self.media_type};base64,{self.base64}"


def carried(part: Opaque, form: str, write: Callable[[Picture], Any]) -> Any:
    """The body of a media part as this form writes it; None where it cannot take it."""
    if part.format == form:
        return part.body
    picture = picture_in(part.body)
    return write(picture) if picture else None


def picture_in(body: Any) -> Picture | None:
    """The picture that a part of any format holds; None for anything else."""
    if not isinstance(body, Mapping):
        return None
    found = (read(body) for read in (_chat, _anthropic, _gemini, _bedrock))
    return next((picture for picture in found if picture is not None), None)


def _chat(body: Mapping[str, Any]) -> Picture | None:
    held = body.get("image_url")
    address = held.get("url") if isinstance(held, Mapping) else held
    return _addressed(address) if isinstance(address, str) else None


def _addressed(address: str) -> Picture:
    head, comma, content = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Picture(head.removeprefix("data:").removesuffix(";base64"), content)
    return Picture(url=address)


def _anthropic(body: Mapping[str, Any]) -> Picture | None:
    source = body.get("source")
    if body.get("type") != "image" or not isinstance(source, Mapping):
        return None
    if isinstance(source.get("url"), str):
        return Picture(url=source["url"])
    return _held(source, "media_type", "data")


def _gemini(body: Mapping[str, Any]) -> Picture | None:
    held = body.get("inlineData", body.get("inline_data"))
    if not isinstance(held, Mapping):
        return None
    picture = _held(held, "mimeType", "data") or _held(held, "mime_type", "data")
    return picture if picture and picture.media_type.startswith("image/") else None


def _bedrock(body: Mapping[str, Any]) -> Picture | None:
    held = body.get("image")
    source = held.get("source") if isinstance(held, Mapping) else None
    if not isinstance(held, Mapping) or not isinstance(source, Mapping):
        return None
    content = source.get("bytes")
    kind = f"image/{held.get('format', 'png')}"
    return Picture(kind, content) if isinstance(content, str) else None


def _held(source: Mapping[str, Any], media_type: str, content: str) -> Picture | None:
    kind, held = source.get(media_type), source.get(content)
    return Picture(kind, held) if isinstance(kind, str) and isinstance(held, str) else None
