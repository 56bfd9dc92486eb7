"""The environment of one Clearhouse program, typed. A missing or wrong variable names itself."""

import os
import re
import tempfile
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
TRACE_URL = re.compile(r"https?://[^/?#@{}\s]+[/?#][!-~]*\{trace_id\}[!-~]*")


class Environment(BaseSettings):
    """What `manage.py up`, compose.yaml or a unit file hands to a program. Times are seconds."""

    model_config = SettingsConfigDict(env_prefix="CLEARHOUSE_", extra="ignore")

    env: Literal["local", "production"] = "local"
    debug: bool = False
    database_url: str = Field(
        default="postgresql://clearhouse@127.0.0.1:5432/clearhouse", validation_alias="DATABASE_URL"
    )
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", validation_alias="REDIS_URL")
    data: Path = Path(".clearhouse")
    secret_key: str = ""
    secret_key_file: Path | None = None
    key_pepper: str = ""
    key_pepper_file: Path | None = None
    allowed_hosts: str = "127.0.0.1,localhost,[::1]"
    public_url: str = Field(default="http://127.0.0.1:8000", pattern=r"^https?://[^/?#\s]+$")
    trace_url: str = ""
    mail_host: str = ""
    mail_port: int = Field(default=25, gt=0, lt=65536)
    mail_user: str = ""
    mail_password: str = ""
    mail_password_file: Path | None = None
    mail_tls: Literal["none", "starttls", "tls"] = "none"
    mail_from: str = "clearhouse@localhost"
    tool_modules: str = "sandbox.tools"
    grace_s: float = 5.0
    sweep_s: float = 0.5
    login_idle_s: float = Field(default=1800.0, ge=60)
    login_s: float = Field(default=43200.0, ge=300)
    quota_calls: int = Field(default=200, ge=10)
    quota_polls: int = Field(default=500, ge=10)
    quota_acts: int = Field(default=50, ge=10)
    quota_requests: int = Field(default=200, ge=10)
    quota_workspace: int = Field(default=1000, ge=10)
    quota_address: int = Field(default=2000, ge=10)
    quota_refused_keys: int = Field(default=5, ge=1)
    database_pool: bool = True
    faults: Path | None = None

    @field_validator("data")
    @classmethod
    def _absolute(cls, data: Path) -> Path:
        return data.resolve()

    @field_validator("trace_url")
    @classmethod
    def _leads_to_a_trace(cls, address: str) -> str:
        if address and TRACE_URL.fullmatch(address) is None:
            raise ValueError(
                "CLEARHOUSE_TRACE_URL cannot be used: it is an address that begins with http:// or "
                "https:// and has {trace_id} in its path or query, without a password or a space, "
                "such as https://traces.example.org/trace/{trace_id}. Correct it, or leave it out."
            )
        return address

    @model_validator(mode="after")
    def _read_secret_files(self) -> "Environment":
        for name in ("secret_key", "key_pepper"):
            file: Path | None = getattr(self, f"{name}_file")
            if file is not None:
                setattr(self, name, file.read_text().strip())
            elif not getattr(self, name):
                if self.env == "production":
                    raise ValueError(
                        f"CLEARHOUSE_{name.upper()} is empty. A production installation never "
                        f"guesses a secret: set it, or CLEARHOUSE_{name.upper()}_FILE."
                    )
                setattr(self, name, "local-only-" + "0" * 40)
        if self.mail_password_file is not None:
            self.mail_password = self.mail_password_file.read_text().strip()
        return self

    @model_validator(mode="after")
    def _rehearse_nothing_in_production(self) -> "Environment":
        if self.faults is not None and self.env == "production":
            raise ValueError(
                "CLEARHOUSE_FAULTS is set in production. A drill kills and stops programs on "
                "purpose, so a production installation never starts with it: unset it, and "
                "rehearse with `manage.py drill`, which runs on servers of its own."
            )
        return self

    @model_validator(mode="after")
    def _tell_strangers_nothing(self) -> "Environment":
        strangers = set(self.allowed_hosts.split(",")) - LOCAL_HOSTS
        if self.debug and (self.env == "production" or strangers):
            raise ValueError(
                "CLEARHOUSE_DEBUG is on where others can reach this installation, and an error "
                "page would show them code and settings. Turn it off, or allow local hosts alone."
            )
        return self

    @property
    def spool(self) -> Path:
        """Where results wait when the database is away (reliability, section 5)."""
        base = self.data if os.access(self.data.parent, os.W_OK) else Path(tempfile.gettempdir())
        return base / "spool"


def database_settings(url: str) -> dict[str, object]:
    """Django's connection settings for a PostgreSQL URL; `?host=/folder` names a unix socket."""
    parts = urlsplit(url)
    query = dict(pair.split("=", 1) for pair in parts.query.split("&") if "=" in pair)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(query.pop("host", "")) or unquote(parts.hostname or ""),
        "PORT": str(parts.port or query.pop("port", "")),
    }
