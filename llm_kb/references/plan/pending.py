"""Plans that wait for the operator: kept as files, approved by id, used once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.errors import KbError
from llm_kb.files.atomic import replace_file
from llm_kb.opener import read_regular
from llm_kb.references.errors import UnknownPlanError
from llm_kb.references.plan.plan import Plan, parse_plan, plan_table

_ID = re.compile(r"[0-9a-f]{12}")
_UNUSABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, KbError)
"""What reading anything but a plan of ours may raise."""

_GONE = "it was used or dropped; see `llm kb references pending`"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlan:
    """A stored plan, and whether the operator has approved it meanwhile."""

    plan: Plan
    stored_at: str
    is_approved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPlans:
    """The directory of plans that wait; only operators' commands approve any of them."""

    directory: Path
    protocols: tuple[str, ...] = ()

    def add(self, plan: Plan, now: str) -> None:
        """Keep a plan until it is approved or dropped."""
        self._write(PendingPlan(plan=plan, stored_at=now))

    def list(self) -> Sequence[PendingPlan]:
        """Return the plans that wait, oldest first; broken ones are passed over."""
        return self.read_all()[0]

    def read_all(self) -> tuple[Sequence[PendingPlan], Sequence[str]]:
        """Return the plans that wait, oldest first, and what is wrong with the others."""
        found, problems = [], []
        for path in sorted(self.directory.glob("*.json")):
            if not _ID.fullmatch(path.stem) or path.is_dir():
                continue  # not ours
            try:
                found.append(self.read(path.stem))
            except UnknownPlanError as error:
                problems.append(str(error))
        return sorted(found, key=lambda pending: pending.stored_at), problems

    def read(self, plan_id: str) -> PendingPlan:
        """Return a plan by its id; raise UnknownPlanError when it is not what was planned."""
        path = self._path(plan_id)
        try:
            table = json.loads(read_regular(path, follow_link=True))
            plan = parse_plan(table["plan"], self.protocols)
            pending = PendingPlan(
                plan=plan, stored_at=str(table["stored_at"]), is_approved=table["approved"] is True
            )
            is_changed = plan.id != plan_id
        except FileNotFoundError as error:
            raise UnknownPlanError(plan_id, _GONE) from error
        except _UNUSABLE as error:
            raise UnknownPlanError(plan_id, f"its file cannot be used: {error}") from error
        if is_changed:
            raise UnknownPlanError(plan_id, "its file was changed since it was planned")
        return pending

    def approve(self, plan_id: str) -> PendingPlan:
        """Note the operator's word on a plan; who made it may carry it out, once."""
        pending = self.read(plan_id)
        approved = PendingPlan(plan=pending.plan, stored_at=pending.stored_at, is_approved=True)
        self._write(approved)
        return approved

    def take(self, plan_id: str) -> Plan:
        """Take a plan out, for it to be carried out; of several who try one succeeds."""
        plan = self.read(plan_id).plan
        try:
            self._path(plan_id).unlink()
        except FileNotFoundError as error:
            raise UnknownPlanError(plan_id, "another process has just used it") from error
        return plan

    def drop(self, plan_id: str) -> bool:
        """Forget a plan, whatever has become of its file; tell whether there was one."""
        try:
            self._path(plan_id).unlink()
        except (FileNotFoundError, IsADirectoryError):
            return False
        return True

    def take_approved(self, plan: Plan) -> bool:
        """Tell whether this very plan has been approved, and use that up."""
        try:
            if not self.read(plan.id).is_approved:
                return False
            return self.take(plan.id).digest == plan.digest
        except UnknownPlanError:
            return False

    def _path(self, plan_id: str) -> Path:
        if not _ID.fullmatch(plan_id):
            raise UnknownPlanError(plan_id, "an id is 12 hexadecimal digits")
        return self.directory / f"{plan_id}.json"

    def _write(self, pending: PendingPlan) -> None:
        table = {
            "stored_at": pending.stored_at,
            "approved": pending.is_approved,
            "plan": plan_table(pending.plan),
        }
        data = json.dumps(table, indent=1, ensure_ascii=False).encode()
        replace_file(self._path(pending.plan.id), data, new_mode=0o600)
