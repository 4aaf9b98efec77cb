"""Plans that wait for the operator: stored as files, approved by id, used once."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.files.containment import read_regular
from llm_kb.files.fields import Fields
from llm_kb.references.errors import (
    ApprovalNeededError,
    TooLargeError,
    TooManyPlansError,
    TopicFileError,
    UnknownPlanError,
)
from llm_kb.references.library import Library
from llm_kb.references.plan.plan import Plan, list_hosts, parse_plan, plan_table, summarize_plan
from llm_kb.references.sources.web import Page
from llm_kb.references.topic.topic_file import Description, format_time

MAX_AGE = timedelta(days=7)
"""How long a plan waits; later its sources have probably changed."""

MAX_WAITING = 50
"""Most plans that wait at once: a model must not hide one plan among thousands."""

MAX_PAGES = 20_000_000
"""The most characters of all pages of a plan, which wait with it."""

_ID = re.compile(r"[0-9a-f]{12,64}")
_GONE = "it was used or dropped, or has expired; see `llm kb references pending`"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """A stored plan, and whether the operator has approved it."""

    plan: Plan
    stored_at: str
    is_approved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlans:
    """The directory of waiting plans; only commands of the operator approve them."""

    directory: Path
    protocols: tuple[str, ...] = ()
    clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)

    def add(self, plan: Plan) -> None:
        """Store a plan until it is approved or dropped, or expires.

        A plan that waits already is not changed. Raises TooManyPlansError, and
        UnknownPlanError if another plan or a damaged file has this id.
        """
        self._drop_expired()
        if self._path(plan.id).exists():
            if self.read(plan.id).plan.digest != plan.digest:
                raise UnknownPlanError(plan.id, "another plan has this id and was kept")
            return
        if len(self._ids()) >= MAX_WAITING:
            raise TooManyPlansError(MAX_WAITING)
        self._write_pages(plan)
        self._write(PendingPlan(plan=plan, stored_at=format_time(self.clock())))

    def ask_later(self, plan: Plan) -> ApprovalNeededError:
        """Store a plan for the operator; return the error that says how to approve it."""
        self.add(plan)
        title, summary = plan.request.title, summarize_plan(plan)
        return ApprovalNeededError(plan.id, title, summary, list_hosts(plan.hosts))

    def keep(self, plan: Plan) -> bool:
        """Store a plan for the operator; raises ApprovalNeededError in any case."""
        raise self.ask_later(plan)

    def read_all(self) -> tuple[Sequence[PendingPlan], Sequence[str]]:
        """Return the waiting plans, oldest first, and the problems of unusable ones."""
        self._drop_expired()
        found, problems = [], []
        for plan_id in self._ids():
            try:
                found.append(self.read(plan_id))
            except UnknownPlanError as error:
                problems.append(str(error))
        return sorted(found, key=lambda pending: pending.stored_at), problems

    def read(self, plan_id: str) -> PendingPlan:
        """Return a plan by its id; raise UnknownPlanError if it is missing or was changed.

        The file holds the digest of the whole plan, of which the id is the beginning.
        """
        path = self._path(plan_id)
        if self._is_expired(path):
            raise UnknownPlanError(plan_id, _GONE)
        try:
            fields = Fields(json.loads(read_regular(path, follow_link=True)))
            digest = fields.text("digest")
            # Before the plan itself is read: those of earlier versions look different.
            fields.raise_problems(lambda problems: ValueError("; ".join(problems)))
            pending = PendingPlan(
                plan=parse_plan(fields.table.get("plan"), self.protocols),
                stored_at=fields.text("stored_at"),
                is_approved=fields.flag("approved"),
            )
            fields.raise_problems(lambda problems: TopicFileError(str(path), "; ".join(problems)))
            is_changed = pending.plan.digest != digest or pending.plan.id != plan_id
        except FileNotFoundError as error:
            raise UnknownPlanError(plan_id, _GONE) from error
        except (OSError, ValueError, RecursionError, KbError) as error:
            raise UnknownPlanError(plan_id, f"its file cannot be used: {error}") from error
        if is_changed:
            raise UnknownPlanError(plan_id, "its file was changed since it was planned")
        return pending

    def approve(self, plan_id: str) -> PendingPlan:
        """Mark a plan as approved: the request that made it may carry it out, once."""
        approved = replace(self.read(plan_id), is_approved=True)
        self._write(approved)
        return approved

    def take(self, plan_id: str) -> Plan:
        """Remove a plan in order to carry it out; of several processes one succeeds."""
        plan = self._with_pages(self.read(plan_id).plan)
        try:
            self._path(plan_id).unlink()
        except FileNotFoundError as error:
            raise UnknownPlanError(plan_id, "another process has just used it") from error
        self._pages_path(plan_id).unlink(missing_ok=True)
        return plan

    def drop(self, plan_id: str) -> bool:
        """Delete a plan, usable or not; tell whether there was one."""
        try:
            self._path(plan_id).unlink()
        except (FileNotFoundError, IsADirectoryError):
            return False
        self._pages_path(plan_id).unlink(missing_ok=True)
        return True

    def drop_request(self, request: Description) -> None:
        """Delete all plans that wait to carry out a request."""
        for waiting in self.read_all()[0]:
            if waiting.plan.request.digest == request.digest:
                self.drop(waiting.plan.id)

    def take_approved(self, plan: Plan) -> Plan | None:
        """Return a plan with the pages that were approved, and remove it; None if it was not."""
        try:
            pending = self.read(plan.id)
            if not pending.is_approved or pending.plan.digest != plan.digest:
                return None
            taken = self.take(plan.id)
        except UnknownPlanError:
            return None
        sources = (
            replace(now, read=then.read)
            for now, then in zip(plan.sources, taken.sources, strict=True)
        )
        return replace(plan, sources=tuple(sources)) if taken.digest == plan.digest else None

    def _ids(self) -> Sequence[str]:
        paths = sorted(self.directory.glob("*.json"))
        return [path.stem for path in paths if _ID.fullmatch(path.stem) and not path.is_dir()]

    def _drop_expired(self) -> None:
        for plan_id in self._ids():
            if self._is_expired(self._path(plan_id)):
                self.drop(plan_id)

    def _is_expired(self, path: Path) -> bool:
        # By the time of the file, which is known for unusable plans too.
        try:
            age = self.clock().timestamp() - path.stat().st_mtime
        except OSError:
            return False
        return age > MAX_AGE.total_seconds()

    def _path(self, plan_id: str) -> Path:
        if not _ID.fullmatch(plan_id):
            raise UnknownPlanError(plan_id, "an id is 32 hexadecimal digits")
        return self.directory / f"{plan_id}.json"

    def _pages_path(self, plan_id: str) -> Path:
        return self.directory / f"{plan_id}.pages"

    def _write_pages(self, plan: Plan) -> None:
        """Keep the pages that were read for a plan; raise TooLargeError over the limit."""
        pages = [page for each in plan.sources for page in each.read.values() if page]
        if sum(len(page.text) for page in pages) > MAX_PAGES:
            reason = f"its pages have over {MAX_PAGES:,} characters; fetch fewer at once"
            raise TooLargeError(plan.request.title, reason)
        if pages:
            table = {"plan": plan.digest, "pages": list(map(asdict, pages))}
            # Escaped, since JSON can name half surrogate pairs.
            packed = gzip.compress(json.dumps(table).encode())
            replace_file(self._pages_path(plan.id), packed, new_mode=0o600)

    def _with_pages(self, plan: Plan) -> Plan:
        """Return a plan with the pages that were read for it; raise UnknownPlanError without them.

        No server is asked for them again: what was shown is what is kept.
        """
        if not plan.is_measured or not any(each.pages for each in plan.sources):
            return plan
        try:
            kept = self._read_pages(plan)
            sources = [
                replace(each, read={page.url: kept[page.url] for page in each.pages})
                for each in plan.sources
            ]
        except (OSError, EOFError, zlib.error, ValueError, TypeError, LookupError) as error:
            reason = "the file of its pages is missing or damaged; drop it and request it again"
            raise UnknownPlanError(plan.id, reason) from error
        return replace(plan, sources=tuple(sources))

    def _read_pages(self, plan: Plan) -> dict[str, Page]:
        """Return the pages that `_write_pages` kept, by address; raise ValueError among others."""
        packed = io.BytesIO(read_regular(self._pages_path(plan.id)))
        with gzip.GzipFile(fileobj=packed) as file:
            table = json.loads(file.read(8 * MAX_PAGES))
        pages = [Page(**page) for page in table["pages"]]
        is_whole = all(isinstance(each.text, str) and isinstance(each.size, int) for each in pages)
        if table["plan"] != plan.digest or not is_whole:
            raise ValueError(plan.id)
        return {page.url: page for page in pages}

    def _write(self, pending: PendingPlan) -> None:
        table = {
            "stored_at": pending.stored_at,
            "approved": pending.is_approved,
            "digest": pending.plan.digest,
            "plan": plan_table(pending.plan),
        }
        data = json.dumps(table, indent=1, ensure_ascii=False).encode()
        replace_file(self._path(pending.plan.id), data, new_mode=0o600)


def pending_entry(pending: PendingPlan) -> dict[str, Any]:
    """Return a waiting plan as an entry of `pending --json`."""
    plan = pending.plan
    return {
        "id": plan.id,
        "title": plan.request.title,
        "summary": summarize_plan(plan),
        "hosts": list(plan.hosts),
        "sources": [item.pop("source") | item for item in plan_table(plan)["plan"]],
        "stored_at": pending.stored_at,
        "is_approved": pending.is_approved,
    }


def open_pending(library: Library) -> PendingPlans:
    """Return the waiting plans of a library."""
    return PendingPlans(
        directory=library.private / ".pending",
        protocols=library.settings.allow_protocols,
        clock=library.clock,
    )
