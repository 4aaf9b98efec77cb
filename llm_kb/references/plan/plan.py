"""What would be fetched, decided before anything is: figures, a digest, a summary. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from llm_kb.references.sources.records import (
    SLACK_BYTES,
    GitSource,
    LocalSource,
    PlannedPage,
    Source,
    WebSource,
    describe_source,
    parse_source,
    source_table,
)
from llm_kb.references.topic.topic_file import Description, describe
from llm_kb.rendering.plain_text import count, format_size, visible_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSource:
    """One source with what it holds now; `size` is None when a server does not say.

    `source.commit` is the commit a git source will be fetched at. `problem` says
    why a source cannot be fetched; the others can be.
    """

    source: Source
    files: int = 0
    size: int | None = 0
    pages: tuple[PlannedPage, ...] = ()
    problem: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts that may be asked for this source."""
        urls = [self.source.url, *(page.url for page in self.pages)]
        return frozenset(filter(None, (urlsplit(url).hostname for url in urls)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request with exact figures: what is approved, by its digest, to be done once."""

    request: Description
    sources: tuple[PlannedSource, ...]

    @property
    def files(self) -> int:
        """How many files would be fetched."""
        return sum(planned.files for planned in self.sources)

    @property
    def size(self) -> int:
        """How many bytes would be fetched, where that is known."""
        return sum(planned.size or 0 for planned in self.sources)

    @property
    def digest(self) -> str:
        """The SHA-256 of everything the operator approves."""
        canonical = json.dumps(plan_table(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @property
    def id(self) -> str:
        """The beginning of the digest, which people copy; too long for anybody to collide."""
        return self.digest[:32]

    @property
    def summary(self) -> str:
        """One line for people: `DioxusLabs/dioxus (1,247 files, ~98 MB) + 1 web page`."""
        repositories = [p for p in self.sources if isinstance(p.source, GitSource | LocalSource)]
        pages = [p for p in self.sources if not isinstance(p.source, GitSource | LocalSource)]
        parts = [f"{describe_source(p.source)} ({_figures(p)})" for p in repositories]
        if number := sum(max(p.files, 1) for p in pages):
            unknown = any(p.size is None for p in pages)
            size = sum(p.size or 0 for p in pages)
            about = f" ({'at least ' if unknown else ''}{format_about(size)})" if size else ""
            parts.append(f"{count(number, 'web page')}{about}")
        return " + ".join(parts)

    def describe(self) -> str:
        """Return the question's details: one line a source, with its figures and notes.

        Models and servers wrote parts of it; none of them can add a line or repaint others.
        """
        lines = []
        for planned in self.sources:
            source = planned.source
            found = planned.problem or _figures(planned)
            lines.append(f"  {visible_line(f'{source.type} {source.url}: {found}')}")
            if isinstance(source, GitSource):
                at = f"{source.ref or 'default branch'} at {source.commit or 'unknown'}"
                only = f", only {', '.join(source.paths)}" if source.paths else ""
                lines.append(f"    {visible_line(at + only)}")
            lines += [f"    {visible_line(note)}" for note in planned.notes]
        return "\n".join(lines)


def format_about(size: int) -> str:
    """Return a size that may be an estimate: `~98 MB`; bytes are exact."""
    return format_size(size) if size < 1000 else f"~{format_size(size)}"


def plan_table(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON has it; `parse_plan` reads it back."""
    request = plan.request
    return describe(request) | {
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
            }
            for planned in plan.sources
        ],
    }


def parse_plan(table: Mapping[str, Any], protocols: Sequence[str]) -> Plan:
    """Read a plan that `plan_table` made; raise SourceError, KeyError or TypeError."""
    described = {each.name: table[each.name] for each in fields(Description)}
    return Plan(
        request=Description(
            **described
            | {
                "tags": tuple(table["tags"]),
                "created_by": dict(table["created_by"]),
                "sources": _parse_sources(table["sources"], protocols),
            }
        ),
        sources=tuple(
            PlannedSource(
                source=source,
                files=item["files"],
                size=item["size"],
                pages=tuple(PlannedPage(url=url, size=size) for url, size in item["pages"]),
                problem=item["problem"],
                notes=tuple(item["notes"]),
            )
            for item, source in zip(
                table["plan"],
                _parse_sources([item["source"] for item in table["plan"]], protocols),
                strict=True,
            )
        ),
    )


def grows_beyond(new: Plan, fetched_bytes: int, fetched_hosts: frozenset[str]) -> str | None:
    """Say why a refresh needs the operator's word again; None when it does not.

    It does when it would reach a host that was not approved, or fetch more than
    twice what was fetched before.
    """
    hosts = frozenset().union(*(planned.hosts for planned in new.sources))
    if fetched_hosts and (strange := sorted(hosts - fetched_hosts)):
        return f"it now leads to {', '.join(strange)}"
    if new.size > 2 * fetched_bytes + 10 * SLACK_BYTES:
        return f"it grew from {format_about(fetched_bytes)} to {format_about(new.size)}"
    return None


def _parse_sources(
    tables: Sequence[Mapping[str, Any]], protocols: Sequence[str]
) -> tuple[Source, ...]:
    return tuple(
        parse_source(table, f"sources[{index}]", allow_local=True, protocols=protocols)
        for index, table in enumerate(tables)
    )


def _figures(planned: PlannedSource) -> str:
    if isinstance(planned.source, WebSource) and planned.size is None:
        return "1 page, size unknown"
    files = count(planned.files, "file")
    return files if planned.size is None else f"{files}, {format_about(planned.size)}"
