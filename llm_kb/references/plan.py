"""Plans: what is to be fetched for a topic, as a person is shown it, and those that wait."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llm_kb.errors import KbError
from llm_kb.files import atomic
from llm_kb.files.containment import read_regular
from llm_kb.files.fields import Fields
from llm_kb.references.errors import ApprovalNeededError, UnknownPlanError
from llm_kb.references.library import Library, list_names, remove
from llm_kb.references.sources.records import Source, read_source, read_string, source_table
from llm_kb.references.sources.rules import host_and_port, show_host
from llm_kb.references.topic import topic_file
from llm_kb.rendering.plain_text import count, format_size, shorten
from llm_kb.texts.safe import visible_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSource:
    """One source with the number and size of its files, or the `problem` that it has.

    They were fetched, or are what is known before that; 0 files are an unknown number.
    `source.commit` is the commit that was fetched from git.
    """

    source: Source
    files: int = 0
    size: int = 0
    language: str = ""
    problem: str | None = None
    notes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """The hosts that it is fetched from, with unusual ports."""
    is_complete: bool = field(default=True, compare=False)
    """Whether everything that an earlier fetch gave was available again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request with what is known of its sources: approved by its digest, carried out once."""

    request: topic_file.TopicFile
    sources: tuple[PlannedSource, ...]
    is_approved: bool = field(default=False, compare=False)

    @property
    def files(self) -> int:
        """The number of files, as far as it is known."""
        return sum(planned.files for planned in self.sources)

    @property
    def size(self) -> int:
        """Their size in bytes."""
        return sum(planned.size for planned in self.sources)

    @property
    def id(self) -> str:
        """128 bits of the SHA-256 of all that is approved; too many to find a collision."""
        canonical = json.dumps(plan_table(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:32]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of all sources, with unusual ports."""
        return tuple(dict.fromkeys(host for planned in self.sources for host in planned.hosts))

    def find_more(self, fetched: Plan) -> Plan | None:
        """Return the plan to ask about again if more was found than this one shows; else None."""
        sources = []
        for shown, found in zip(self.sources, fetched.sources, strict=True):
            others = [host for host in found.hosts if host not in shown.hosts]
            notes = [*shown.notes, *(f"leads to {show_host(host)}" for host in others)]
            more = replace(shown, hosts=(*shown.hosts, *others))
            if is_more(shown, found.files, found.size):
                notes.append("more than was announced")
                more = replace(more, files=found.files, size=max(found.size, shown.size))
            sources.append(replace(more, notes=tuple(notes)))
        more_to_ask = replace(self, sources=tuple(sources), is_approved=False)
        return None if more_to_ask == self else more_to_ask


def is_more(shown: PlannedSource, files: int, size: int = 0) -> bool:
    """Tell whether a source has more than was shown of it, as far as something was."""
    return bool(shown.files) and (files > MARGIN * shown.files or size > MARGIN * shown.size)


MARGIN = 1.1
"""How many times as much as GitHub announced may be fetched unasked: it has grown since."""


_FIGURES = ("files", "size", "language", "problem", "notes", "hosts")
"""The fields of a planned source that are stored beside the source."""


def plan_table(plan: Plan) -> dict[str, Any]:
    """Return the plan as a table for JSON; `parse_plan` reads it back."""
    return {
        "request": topic_file.request_table(plan.request),
        "created_by": dict(plan.request.created_by),
        "sources": [
            {"source": source_table(planned.source)}
            | {key: getattr(planned, key) for key in _FIGURES}
            for planned in plan.sources
        ],
    }


def parse_plan(fields: Fields, protocols: Collection[str]) -> Plan:
    """Read a plan that `plan_table` made; raise TopicFileError."""
    created_by = fields.fields("created_by").table
    request = topic_file.parse_request(
        fields.fields("request").table,
        created_by={key: str(value) for key, value in created_by.items()},
        protocols=protocols,
    )
    sources = [_read_planned(each, protocols) for each in fields.list_of_fields("sources")]
    topic_file.refuse_problems(fields, "plan")
    return Plan(request=request, sources=tuple(filter(None, sources)))


def _read_planned(fields: Fields, protocols: Collection[str]) -> PlannedSource | None:
    source = read_source(fields.fields("source"), protocols=protocols)
    if source is None:
        return None
    return PlannedSource(
        source=source,
        files=fields.count("files"),
        size=fields.count("size"),
        language=fields.text("language", "", read_string),
        problem=fields.get("problem", read_string),
        notes=fields.texts("notes", read_string),
        hosts=fields.texts("hosts", read_string),
    )


def format_about(size: int) -> str:
    """Return a rounded size as such: `~98 MB`; bytes are exact."""
    return format_size(size) if size < 1000 else f"~{format_size(size)}"


MOST_NOTES = 10
WIDTH = 300
"""Characters shown of a note and of a name. What an approval covers is shown whole, whatever its
length, which `parse_request` limits: hosts, addresses and paths."""


def summarize_plan(plan: Plan) -> str:
    """Return one line for people: `DioxusLabs/dioxus (1,247 files, ~98 MB) + 1 web page`."""
    parts = []
    for planned in plan.sources:
        if planned.source.is_tree:
            name = planned.source.short_name or _show_url(planned.source.url)
            figures = _figures(planned)
            parts.append(f"{name} ({figures})" if figures else name)
    pages = [p for p in plan.sources if not p.source.is_tree and not p.problem]
    if pages:
        number = sum(p.files or getattr(p.source, "max_pages", 1) for p in pages)
        size = sum(p.size for p in pages)
        is_most = any(not p.files and hasattr(p.source, "max_pages") for p in pages)
        about = f" ({format_about(size)})" if size else ""
        parts.append(f"{'up to ' if is_most else ''}{count(number, 'web page')}{about}")
    return visible_line(shorten(" + ".join(parts), 3 * WIDTH))


def render_plan(plan: Plan) -> str:
    """Return a plan as text: a summary line, then the details."""
    return f"{visible_line(plan.request.title)}: {summarize_plan(plan)}\n{describe_plan(plan)}"


def describe_plan(plan: Plan) -> str:
    """Return the details of a plan: a few lines a source, and last the hosts."""
    lines = []
    for planned in plan.sources:
        source, figures = planned.source, _show(_figures(planned))
        lines.append(f"  {source.type} {_show_url(source.url)}{': ' if figures else ''}{figures}")
        if source.details:
            lines.append(f"    {visible_line(source.details)}")
        lines += [f"    {_show(note)}" for note in planned.notes[:MOST_NOTES]]
        if len(planned.notes) > MOST_NOTES:
            lines.append(f"    and {count(len(planned.notes) - MOST_NOTES, 'more note')}")
    return "\n".join([*lines, f"  from {list_hosts(plan.hosts)}"])


def list_hosts(hosts: Sequence[str]) -> str:
    """Return all hosts on one line: in ASCII, with their spelling if it differs."""
    return ", ".join(visible_line(show_host(host)) for host in hosts) or "this machine"


def _figures(planned: PlannedSource) -> str:
    """Return what is known of the files of a source; empty for nothing."""
    if planned.problem or not planned.files:
        return planned.problem or ""
    language = [planned.language] if planned.language else []
    return ", ".join([count(planned.files, "file"), format_about(planned.size), *language])


def _show_url(url: str) -> str:
    """Return an address with its host in ASCII."""
    host = host_and_port(url)
    if not host.isascii():
        url = url.replace(urlsplit(url).netloc, show_host(host).partition(" ")[0], 1)
    return visible_line(url)


def _show(text: str) -> str:
    return visible_line(shorten(text, WIDTH))


MAX_AGE = timedelta(days=7)
"""How long a plan waits."""

MAX_WAITING = 50
"""Most plans that wait at once: a model must not hide one plan among thousands."""

_ID = re.compile(r"[0-9a-f]{32}")
_GONE = "it was used or dropped, or has expired; see `llm kb review`"


class PendingPlans:
    """The waiting plans of a library, a file each; only the operator approves them."""

    def __init__(self, library: Library) -> None:
        self.directory = library.private / ".pending"
        self._protocols = library.settings.allow_protocols
        self._clock = library.clock

    def ask_later(self, plan: Plan) -> ApprovalNeededError:
        """Store a plan until it is approved or dropped, or expires; return what says so.

        A plan that waits already is not changed; others of the same request are dropped. Raises
        KbError if many wait, and UnknownPlanError if a damaged file has this id.
        """
        ids = self.ids()
        if plan.id in ids:
            self.read(plan.id)
        else:
            same = self.find(plan.request)
            if len(ids) - bool(same) >= MAX_WAITING:
                raise KbError(
                    f"{count(len(ids), 'plan')} wait for approval already; the user can approve or"
                    " drop some: llm kb review"
                )
            self._write(plan)
            if same:
                self.drop(same.id)
        title, summary = plan.request.title, summarize_plan(plan)
        return ApprovalNeededError(plan.id, title, summary, list_hosts(plan.hosts))

    def read_all(self) -> tuple[Sequence[Plan], Sequence[str]]:
        """Return the waiting plans, oldest first, and the problems of unusable ones."""
        found, problems = [], []
        for plan_id in self.ids():
            try:
                found.append(self.read(plan_id))
            except UnknownPlanError as error:
                problems.append(str(error))
        return found, problems

    def find(self, request: topic_file.TopicFile) -> Plan | None:
        """Return the plan that waits to carry out a request; None without one."""
        plans = self.read_all()[0]
        return next((each for each in plans if each.request.digest == request.digest), None)

    def forget(self, request: topic_file.TopicFile) -> None:
        """Delete the plan that waits to carry out a request."""
        if waiting := self.find(request):
            self.drop(waiting.id)

    def read(self, plan_id: str) -> Plan:
        """Return a plan by its id; raise UnknownPlanError if it is missing or was changed."""
        place = self._place(plan_id)
        if plan_id not in self.ids():
            raise UnknownPlanError(plan_id, _GONE)
        try:
            fields = Fields(json.loads(read_regular(place)))
            is_approved = fields.flag("approved")
            plan = parse_plan(fields.fields("plan"), self._protocols)
        except (OSError, ValueError, RecursionError, KbError) as error:
            raise UnknownPlanError(plan_id, f"its file cannot be used: {error}") from error
        if plan.id != plan_id:
            raise UnknownPlanError(plan_id, "its file was changed since it was planned")
        return replace(plan, is_approved=is_approved)

    def approve(self, plan_id: str) -> None:
        """Mark a plan as approved: the request that made it may carry it out, once."""
        self._write(replace(self.read(plan_id), is_approved=True))

    @contextmanager
    def carrying_out(self, plan_id: str) -> Iterator[Plan]:
        """Yield a plan, and forget it after the block; if that fails or is killed, it waits on.

        Of several processes one succeeds.
        """
        try:
            with atomic.locked(self._place(plan_id).with_suffix(".lock"), seconds=0):
                yield self.read(plan_id)
                self.drop(plan_id)
        except atomic.BusyError as error:
            raise UnknownPlanError(plan_id, "another process is just using it") from error

    def drop(self, plan_id: str) -> bool:
        """Delete a plan, usable or not; tell whether there was one."""
        place = self._place(plan_id)
        was_there = os.path.lexists(place)
        remove(place)
        return was_there

    def ids(self) -> list[str]:
        """Return the ids of all plans, oldest first; those that have expired are deleted."""
        found = []
        for name in list_names(self.directory):
            plan_id, dot, suffix = name.partition(".")
            if (dot, suffix) == (".", "json") and _ID.fullmatch(plan_id):
                # By the time of the file, which is known for unusable plans too.
                with suppress(OSError):
                    at = self._place(plan_id).lstat().st_mtime
                    if self._clock().timestamp() - at > MAX_AGE.total_seconds():
                        self.drop(plan_id)
                    else:
                        found.append((at, plan_id))
        return [plan_id for _, plan_id in sorted(found)]

    def _place(self, plan_id: str) -> Path:
        if not _ID.fullmatch(plan_id):
            raise UnknownPlanError(plan_id, "an id is 32 hexadecimal digits")
        return self.directory / f"{plan_id}.json"

    def _write(self, plan: Plan) -> None:
        table = {"approved": plan.is_approved, "plan": plan_table(plan)}
        atomic.make_directory(self.directory, mode=0o700)
        data = json.dumps(table, indent=1, ensure_ascii=True).encode()
        atomic.replace_below(self.directory, self._place(plan.id).name, data, new_mode=0o600)
