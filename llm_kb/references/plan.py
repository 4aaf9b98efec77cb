"""Plans: what was fetched for a topic and waits to be approved, by its digest, once."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llm_kb.errors import KbError
from llm_kb.files import atomic
from llm_kb.files.containment import read_regular
from llm_kb.files.fields import Fields
from llm_kb.files.walk import iter_files
from llm_kb.references.errors import ApprovalNeededError, DeniedError, UnknownPlanError
from llm_kb.references.library import Library, list_names, remove
from llm_kb.references.sources.records import Source, read_source, read_string, source_table
from llm_kb.references.sources.rules import host_and_port, show_host
from llm_kb.references.topic import topic_directory, topic_file
from llm_kb.references.topic.staging import take_over
from llm_kb.rendering.plain_text import count, format_size, shorten
from llm_kb.texts.safe import visible_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSource:
    """One source with the number and size of its files, or the `problem` that it has.

    `source.commit` is the commit that was fetched from git.
    """

    source: Source
    files: int = 0
    size: int = 0
    problem: str | None = None
    notes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """The hosts that it is fetched from, with unusual ports."""
    is_complete: bool = field(default=True, compare=False)
    """Whether everything that an earlier fetch gave was available again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A request with what was fetched for it: approved by its digest, and carried out once.

    `content` is the hash of the record of the files, which are in `directory`. It is empty if
    no host was contacted yet.
    """

    request: topic_file.TopicFile
    sources: tuple[PlannedSource, ...]
    content: str = ""
    warnings: tuple[str, ...] = ()
    directory: Path | None = field(default=None, compare=False)
    stored_at: str | None = field(default=None, compare=False)
    """When it was stored to wait for its approval."""
    is_approved: bool = field(default=False, compare=False)

    @property
    def files(self) -> int:
        """The number of fetched files."""
        return sum(planned.files for planned in self.sources)

    @property
    def size(self) -> int:
        """Their size in bytes."""
        return sum(planned.size for planned in self.sources)

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
        return bool(self.content)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of all sources, with unusual ports."""
        return tuple(dict.fromkeys(host for planned in self.sources for host in planned.hosts))


_FIGURES = ("files", "size", "problem", "notes", "hosts")
"""The fields of a planned source that are stored beside the source."""


def plan_table(plan: Plan) -> dict[str, Any]:
    """Return the plan as a table for JSON; `parse_plan` reads it back."""
    return {
        "request": topic_file.request_table(plan.request),
        "created_by": dict(plan.request.created_by),
        "content": plan.content,
        "warnings": list(plan.warnings),
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
    plan = Plan(
        request=request,
        sources=tuple(filter(None, sources)),
        content=fields.text("content", "", read_string),
        warnings=fields.texts("warnings", read_string),
    )
    topic_file.refuse_problems(fields, "plan")
    return plan


def _read_planned(fields: Fields, protocols: Collection[str]) -> PlannedSource | None:
    source = read_source(fields.fields("source"), protocols=protocols)
    if source is None:
        return None
    return PlannedSource(
        source=source,
        files=fields.count("files"),
        size=fields.count("size"),
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
    if not plan.is_measured:
        return f"{count(len(plan.sources), 'source')} not contacted yet"
    repositories = [p for p in plan.sources if p.source.is_tree]
    pages = [p for p in plan.sources if not p.source.is_tree]
    parts = [f"{_name(p)} ({_figures(p)})" for p in repositories]
    if number := sum(p.files for p in pages):
        size = format_about(sum(p.size for p in pages))
        parts.append(f"{count(number, 'web page')} ({size})")
    return visible_line(shorten(" + ".join(parts), 3 * WIDTH))


def render_plan(plan: Plan) -> str:
    """Return a plan as text: a summary line, then the details."""
    return f"{visible_line(plan.request.title)}: {summarize_plan(plan)}\n{describe_plan(plan)}"


def describe_plan(plan: Plan) -> str:
    """Return the details of a plan: a few lines a source, and last the hosts."""
    lines = []
    for planned in plan.sources:
        source = planned.source
        lines.append(f"  {source.type} {_show_url(source.url)}: {_show(_figures(planned))}")
        if source.details:
            lines.append(f"    {visible_line(source.details)}")
        lines += [f"    {_show(note)}" for note in planned.notes[:MOST_NOTES]]
        if len(planned.notes) > MOST_NOTES:
            lines.append(f"    and {count(len(planned.notes) - MOST_NOTES, 'more note')}")
    return "\n".join([*lines, f"  from {list_hosts(plan.hosts)}"])


def list_hosts(hosts: Sequence[str]) -> str:
    """Return all hosts on one line: in ASCII, with their spelling if it differs."""
    return ", ".join(visible_line(show_host(host)) for host in hosts) or "this machine"


def _name(planned: PlannedSource) -> str:
    return planned.source.short_name or _show_url(planned.source.url)


def _figures(planned: PlannedSource) -> str:
    if planned.problem or not planned.files:
        return planned.problem or "not contacted yet"
    return f"{count(planned.files, 'file')}, {format_about(planned.size)}"


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
_PLAN, _TOPIC = "plan.json", "topic"
_GONE = "it was used or dropped, or has expired; see `llm kb references pending`"


class PendingPlans:
    """The waiting plans of a library; only commands of the operator approve them.

    Each has a directory named by its id, with `plan.json` and the fetched `topic`.
    """

    def __init__(self, library: Library) -> None:
        self.directory = library.private / ".pending"
        self._settings = library.settings
        self._clock = library.clock

    def add(self, plan: Plan) -> None:
        """Store a plan with its files until it is approved or dropped, or expires.

        A plan that waits already is not changed; others of the same request are dropped. Raises
        KbError if many wait or their files are over `max_bytes`, and UnknownPlanError if a damaged
        file has this id.
        """
        waiting = self.read_all()[0]
        place = self._place(plan.id)
        if place.exists():
            self.read(plan.id)
            return
        replaced = [each for each in waiting if each.request.digest == plan.request.digest]
        number = len(self._ids()) - len(replaced)
        size = plan.size + sum(each.size for each in waiting if each not in replaced)
        if number >= MAX_WAITING or size > self._settings.max_bytes:
            raise KbError(
                f"{count(number, 'plan')} wait for approval already; the user can approve or drop"
                " some: llm kb references pending"
            )
        new = self.directory / f"new-{secrets.token_hex(8)}"
        with atomic.locked(self.directory / "new.lock"):
            for name in list_names(self.directory):
                if name.startswith("new-"):  # of a process that was killed: this one has the lock
                    remove(self.directory / name)
            try:
                with atomic.writing(place):
                    self._write(new, replace(plan, stored_at=topic_file.format_time(self._clock())))
                    if plan.directory:
                        shutil.move(plan.directory, new / _TOPIC)
                    new.rename(place)
            finally:
                remove(new)  # is there only if that failed
        for each in replaced:
            self.drop(each.id)

    def ask_later(self, plan: Plan) -> ApprovalNeededError:
        """Store a plan for the operator; return the error that says how to approve it."""
        self.add(plan)
        title, summary = plan.request.title, summarize_plan(plan)
        return ApprovalNeededError(plan.id, title, summary, list_hosts(plan.hosts))

    def read_all(self) -> tuple[Sequence[Plan], Sequence[str]]:
        """Return the waiting plans, oldest first, and the problems of unusable ones."""
        found, problems = [], []
        for plan_id in self._ids():
            try:
                found.append(self.read(plan_id))
            except UnknownPlanError as error:
                problems.append(str(error))
        return sorted(found, key=lambda plan: plan.stored_at or ""), problems

    def find(self, request: topic_file.TopicFile) -> Plan | None:
        """Return the plan that waits to carry out a request; None without one."""
        plans = self.read_all()[0]
        return next((each for each in plans if each.request.digest == request.digest), None)

    def read(self, plan_id: str) -> Plan:
        """Return a plan by its id; raise UnknownPlanError if it is missing or was changed."""
        place = self._place(plan_id)
        if self._is_expired(place):
            raise UnknownPlanError(plan_id, _GONE)
        try:
            fields = Fields(json.loads(read_regular(place / _PLAN)))
            stored_at, is_approved = fields.text("stored_at"), fields.flag("approved")
            plan = parse_plan(fields.fields("plan"), self._settings.allow_protocols)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UnknownPlanError(plan_id, _GONE) from error
        except (OSError, ValueError, RecursionError, KbError) as error:
            raise UnknownPlanError(plan_id, f"its file cannot be used: {error}") from error
        if plan.id != plan_id:
            raise UnknownPlanError(plan_id, "its file was changed since it was planned")
        directory = place / _TOPIC if plan.content else None
        return replace(plan, directory=directory, stored_at=stored_at, is_approved=is_approved)

    def approve(self, plan_id: str) -> None:
        """Mark a plan as approved: the request that made it may carry it out, once."""
        self._write(self._place(plan_id), replace(self.read(plan_id), is_approved=True))

    @contextmanager
    def carrying_out(self, plan_id: str, scratch: Path) -> Iterator[Plan]:
        """Yield a plan with its files below a directory, and forget it after the block.

        If the block fails or is killed the plan waits on, since its files are linked, not moved,
        unless it was denied. Of several processes one succeeds. Raises UnknownPlanError if they
        are not those that were fetched.
        """
        with ExitStack() as held:
            try:
                held.enter_context(
                    atomic.locked(self._place(plan_id).with_suffix(".lock"), seconds=0)
                )
            except atomic.BusyError as error:
                raise UnknownPlanError(plan_id, "another process is just using it") from error
            plan = self.read(plan_id)
            if plan.directory:
                plan = replace(plan, directory=_link_content(plan, plan.directory, scratch))
            try:
                yield plan
            except DeniedError:
                self.drop(plan_id)
                raise
            self.drop(plan_id)

    def drop(self, plan_id: str) -> bool:
        """Delete a plan, usable or not; tell whether there was one."""
        return self._forget(self._place(plan_id))

    def _ids(self) -> list[str]:
        """Return the ids of all plans; what has expired, or a killed process left, is deleted."""
        found = []
        for name in list_names(self.directory):
            if name.startswith("gone-"):
                remove(self.directory / name)
            elif self._is_expired(self.directory / name):
                self._forget(self.directory / name)
            elif _ID.fullmatch(name):
                found.append(name)
        return sorted(set(found))

    def _forget(self, place: Path) -> bool:
        """Delete a directory; tell whether there was one.

        It goes in one step, so that no other process takes a plan without some of its files.
        """
        gone = self.directory / f"gone-{secrets.token_hex(8)}"
        try:
            place.rename(gone)
        except OSError:
            return False
        remove(gone)
        return True

    def _is_expired(self, place: Path) -> bool:
        # By the time of the directory, which is known for unusable plans too.
        try:
            age = self._clock().timestamp() - place.lstat().st_mtime
        except OSError:
            return False
        return age > MAX_AGE.total_seconds()

    def _place(self, plan_id: str) -> Path:
        if not _ID.fullmatch(plan_id):
            raise UnknownPlanError(plan_id, "an id is 32 hexadecimal digits")
        return self.directory / plan_id

    def _write(self, place: Path, plan: Plan) -> None:
        table = {
            "stored_at": plan.stored_at,
            "approved": plan.is_approved,
            "plan": plan_table(plan),
        }
        atomic.make_directory(place, mode=0o700)
        data = json.dumps(table, indent=1, ensure_ascii=True).encode()
        atomic.replace_below(place, _PLAN, data, new_mode=0o600)


def _link_content(plan: Plan, source: Path, scratch: Path) -> Path:
    """Link the files of a waiting plan into a directory of their own, and return that.

    Raises UnknownPlanError unless they are those of the plan, and no others.
    """
    target = scratch / _TOPIC
    try:
        record = read_regular(source / topic_directory.FILE_NAME)
        files = topic_directory.parse_provenance(record, str(source)).files
        names = {path for path, _ in iter_files(source)}
        for path in names:
            atomic.make_directory((target / path).parent)
            with atomic.writing(target / path):
                take_over(source / path, target / path)
        is_changed = any(topic_directory.find_differences(target).values())
    except atomic.WriteError:
        raise
    except (OSError, KbError) as error:
        raise UnknownPlanError(plan.id, f"its files cannot be read: {error}") from error
    is_changed |= source.is_symlink() or names != {topic_directory.FILE_NAME, *files}
    if topic_directory.hash_content(record) != plan.content or is_changed:
        raise UnknownPlanError(plan.id, "its files were changed since they were fetched")
    return target


def pending_entry(plan: Plan) -> dict[str, Any]:
    """Return a waiting plan as an entry of `pending --json`."""
    return {
        "id": plan.id,
        "title": plan.request.title,
        "summary": summarize_plan(plan),
        "hosts": list(plan.hosts),
        "sources": [item.pop("source") | item for item in plan_table(plan)["sources"]],
        "stored_at": plan.stored_at,
        "is_approved": plan.is_approved,
    }
