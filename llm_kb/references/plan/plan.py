"""A plan: what would be fetched, with exact figures and a digest. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_kb.files.fields import BadValueError, Fields, describe, read_count
from llm_kb.references.errors import TopicFileError
from llm_kb.references.sources.git import Tree
from llm_kb.references.sources.records import (
    PlannedPage,
    Source,
    read_source,
    read_string,
    source_table,
)
from llm_kb.references.sources.rules import host_and_port
from llm_kb.references.sources.web import Page
from llm_kb.references.topic.topic_file import Description, list_fields
from llm_kb.references.topic.topic_text import read_description, read_sources
from llm_kb.rendering.plain_text import format_size


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSource:
    """One source with its present files; `size` is None if it is unknown.

    `source.commit` is the commit that will be fetched from git. `problem` is the reason
    why a source cannot be fetched; the others can be. The fields from `tree` on are not part of
    what is approved.
    """

    source: Source
    files: int = 0
    size: int | None = 0
    pages: tuple[PlannedPage, ...] = ()
    problem: str | None = None
    notes: tuple[str, ...] = ()
    contacted: tuple[str, ...] = ()
    """The hosts that were contacted for its first page: its own, and those of redirects."""
    robots: tuple[str, ...] = ()
    """The hosts that were contacted for the `robots.txt` of a crawl."""
    tree: Tree | None = field(default=None, compare=False, repr=False)
    """The files that were listed, so that they need not be listed again."""
    read: Mapping[str, Page | None] = field(default_factory=dict, compare=False, repr=False)
    """The pages read already, by address; None for those that have not changed."""
    is_unchanged: bool = False
    has_moved: bool = False
    """Whether it leads to a host that must be approved before its pages are planned."""
    kept: tuple[str, ...] = ()
    """Files of an earlier fetch whose pages may still exist, but cannot be fetched now."""
    warnings: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that this source may contact, with unusual ports."""
        urls = (self.source.url, *(page.url for page in self.pages))
        hosts = (*map(host_and_port, urls), *self.contacted, *self.robots)
        return tuple(dict.fromkeys(filter(None, hosts)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request with exact figures: approved by its digest, and carried out once."""

    request: Description
    sources: tuple[PlannedSource, ...]

    @property
    def files(self) -> int:
        """The number of files to fetch."""
        return sum(planned.files for planned in self.sources)

    @property
    def size(self) -> int:
        """The number of bytes to fetch, as far as it is known."""
        return sum(planned.size or 0 for planned in self.sources)

    @property
    def digest(self) -> str:
        """The SHA-256 of everything the operator approves."""
        canonical = json.dumps(plan_table(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def id(self) -> str:
        """The first 128 bits of the digest, for people to copy; too many to find a collision."""
        return self.digest[:32]

    @property
    def is_measured(self) -> bool:
        """Whether the sources were contacted for their files."""
        return any(planned.files or planned.problem for planned in self.sources)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that would be contacted, with unusual ports."""
        return tuple(dict.fromkeys(host for planned in self.sources for host in planned.hosts))


def plan_table(plan: Plan) -> dict[str, Any]:
    """Return the plan as a table for JSON; `parse_plan` reads it back."""
    request = plan.request
    return list_fields(request) | {
        "tags": list(request.tags),
        "created_by": dict(request.created_by),
        "sources": [source_table(source) for source in request.sources],
        "plan": [
            {
                "source": source_table(planned.source),
                "files": planned.files,
                "size": planned.size,
                "pages": [[page.url, page.size] for page in planned.pages],
                "problem": planned.problem,
                "notes": list(planned.notes),
                "contacted": list(planned.contacted),
                "robots": list(planned.robots),
            }
            for planned in plan.sources
        ],
    }


def parse_plan(table: object, protocols: Collection[str]) -> Plan:
    """Read a plan that `plan_table` made; raise TopicFileError."""
    fields = Fields(table)
    request = Description(
        **read_description(fields, fields.text("body", "", read_string)),
        sources=read_sources(fields, protocols=protocols),
    )
    sources = tuple(_read_planned(each, protocols) for each in fields.list_of_fields("plan"))
    fields.raise_problems(lambda problems: TopicFileError("plan", "; ".join(problems)))
    return Plan(request=request, sources=tuple(filter(None, sources)))


def _read_planned(fields: Fields, protocols: Collection[str]) -> PlannedSource | None:
    source = read_source(fields.fields("source"), allow_local=True, protocols=protocols)
    if source is None:
        return None
    return PlannedSource(
        source=source,
        files=fields.count("files"),
        size=fields.get("size", read_count),
        pages=fields.get("pages", _read_pages) or (),
        problem=fields.get("problem", read_string),
        notes=fields.texts("notes", read_string),
        contacted=fields.texts("contacted", read_string),
        robots=fields.texts("robots", read_string),
    )


def _read_pages(value: object) -> tuple[PlannedPage, ...]:
    """Read pairs of an address and a size, which may be null."""
    try:
        return tuple(
            PlannedPage(url=read_string(url), size=None if size is None else read_count(size))
            for url, size in value  # type: ignore[attr-defined] # TypeError if it is not iterable
        )
    except TypeError as error:
        raise BadValueError(describe(value), "a list of pages with their sizes") from error


def format_about(size: int) -> str:
    """Return a size that may be an estimate: `~98 MB`; bytes are exact."""
    return format_size(size) if size < 1000 else f"~{format_size(size)}"
