"""Shapes that several models share."""

from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import pgtrigger
from django.db import models
from django.db.models.functions import Now


class ClockTimestamp(Now):
    """The database's wall clock; `now()` stands still within a transaction (reliability, P5)."""

    template = "clock_timestamp()"

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, **context)


class WordField(models.CharField):  # type: ignore[type-arg]
    """One word of a vocabulary, stored as text and refused by the database when unknown."""

    def __init__(self, words: type[StrEnum] | None = None, **options: Any) -> None:
        self.words = words
        options.setdefault("max_length", 40)
        super().__init__(**options)

    def deconstruct(self) -> Any:
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.CharField", args, options

    def from_db_value(self, value: str | None, *_: Any) -> Any:
        return self.words(value) if self.words and value else value


M = TypeVar("M", bound=models.Model)


def hydrated(model: type[M], values: Sequence[Any]) -> M:
    """A row of a statement of our own, all concrete columns in order, as the ORM would give it."""
    names, words = _columns(model)
    row = list(values)
    for at, field in words:
        row[at] = field.from_db_value(row[at])
    return model.from_db("default", names, row)


@cache
def _columns(model: type[models.Model]) -> tuple[list[str], list[tuple[int, WordField]]]:
    """The attributes of a model in the order of its columns, and which of them are words."""
    fields = model._meta.concrete_fields
    words = [(at, field) for at, field in enumerate(fields) if isinstance(field, WordField)]
    return [field.attname for field in fields], words


def moment(**options: Any) -> "models.DateTimeField[Any, Any]":
    """An instant on the database's clock, empty until it comes."""
    return models.DateTimeField(null=True, blank=True, **options)


def append_only(name: str) -> pgtrigger.Trigger:
    """Refuse every edit and every deletion of a row."""
    return pgtrigger.Protect(name=name, operation=pgtrigger.Update | pgtrigger.Delete)
