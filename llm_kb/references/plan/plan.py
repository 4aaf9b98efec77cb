"""Plans: what would be fetched, with its digest, and the text that an operator reads. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

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
from llm_kb.references.sources.rules import host_and_port, show_host
from llm_kb.references.sources.web import Page
from llm_kb.references.topic.topic_file import (
    Description,
    list_fields,
    read_description,
    read_sources,
)
from llm_kb.rendering.plain_text import count, format_size, shorten, visible_line


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
    """The hosts that were contacted for its first page and for `robots.txt`, also by redirects."""
    tree: Tree | None = field(default=None, compare=False, repr=False)
    """The files that were listed, so that they need not be listed again."""
    read: Mapping[str, Page | None] = field(default_factory=dict, compare=False, repr=False)
    """The pages read already, by address; None for those that have not changed."""
    is_unchanged: bool = False
    kept: tuple[str, ...] = ()
    """Files of an earlier fetch whose pages may still exist, but cannot be fetched now."""
    warnings: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that this source may contact, with unusual ports."""
        urls = (self.source.url, *(page.url for page in self.pages))
        hosts = (*map(host_and_port, urls), *self.contacted)
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


MOST_NOTES = 10
MOST_HOSTS = 10
WIDTH = 300
"""Characters shown of an address, of a list of paths and of a note."""


def summarize_plan(plan: Plan) -> str:
    """Return one line for people: `DioxusLabs/dioxus (1,247 files, ~98 MB) + 1 web page`."""
    if not plan.is_measured:
        return f"{count(len(plan.sources), 'source')} not contacted yet"
    repositories = [p for p in plan.sources if p.source.is_tree]
    pages = [p for p in plan.sources if not p.source.is_tree]
    parts = [f"{_name(p)} ({_figures(p)})" for p in repositories]
    if number := sum(p.files for p in pages):
        unknown = any(p.size is None for p in pages)
        size = sum(p.size or 0 for p in pages)
        about = f" ({'at least ' if unknown else ''}{format_about(size)})" if size else ""
        parts.append(f"{count(number, 'web page')}{about}")
    return visible_line(shorten(" + ".join(parts), 3 * WIDTH))


def render_plan(plan: Plan) -> str:
    """Return a plan as text: a summary line, then the details."""
    return f"{visible_line(plan.request.title)}: {summarize_plan(plan)}\n{describe_plan(plan)}"


def describe_plan(plan: Plan) -> str:
    """Return the details of a plan: a few lines a source, and last the hosts."""
    lines = []
    for planned in plan.sources:
        source = planned.source
        found = planned.problem or _figures(planned)
        lines.append(f"  {source.type} {_show_url(source.url)}: {_show(found)}")
        if source.details:
            lines.append(f"    {_show(source.details)}")
        lines += [f"    {_show(note)}" for note in planned.notes[:MOST_NOTES]]
        if len(planned.notes) > MOST_NOTES:
            lines.append(f"    and {count(len(planned.notes) - MOST_NOTES, 'more note')}")
    return "\n".join([*lines, f"  from {list_hosts(plan.hosts)}"])


def list_hosts(hosts: Sequence[str]) -> str:
    """Return hosts on one line: in ASCII, with their spelling if it differs."""
    shown = [_show(show_host(host)) for host in hosts[:MOST_HOSTS]] or ["this machine"]
    more = [f"and {len(hosts) - MOST_HOSTS} more"] if len(hosts) > MOST_HOSTS else []
    return ", ".join([*shown, *more])


def _name(planned: PlannedSource) -> str:
    return planned.source.short_name or _show_url(planned.source.url)


def _figures(planned: PlannedSource) -> str:
    if not planned.files:
        return "not contacted yet"
    if planned.size is None and planned.pages:
        return "1 page, size unknown"
    files = count(planned.files, "file")
    return files if planned.size is None else f"{files}, {format_about(planned.size)}"


def _show_url(url: str) -> str:
    """Return an address with its host in ASCII; a long one is cut in the middle."""
    host = host_and_port(url)
    if not host.isascii():
        url = url.replace(urlsplit(url).netloc, show_host(host).partition(" ")[0], 1)
    if len(url) > WIDTH:
        url = f"{url[: WIDTH - 100]}…{url[-80:]} ({len(url):,} characters)"
    return visible_line(url)


def _show(text: str) -> str:
    return visible_line(shorten(text, WIDTH))
