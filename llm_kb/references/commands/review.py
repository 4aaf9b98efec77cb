"""Plans of models in `llm kb review`: kept, they are fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from llm_kb.errors import KbError
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.references.calls import find_library
from llm_kb.references.commands.group import show_progress
from llm_kb.references.errors import UnknownPlanError
from llm_kb.references.library import Library
from llm_kb.references.plan import PendingPlans, Plan, plan_table, render_plan, summarize_plan
from llm_kb.rendering.plain_text import count
from llm_kb.terminal.output import ask, say
from llm_kb.terminal.screen import can_ask


def list_waiting(kb: KnowledgeBase) -> Iterator[WaitingPlan]:
    """Yield the plans that wait, oldest first, damaged ones too."""
    library = find_library(kb.config, kb.directory)
    for plan_id in PendingPlans(library).ids():
        yield WaitingPlan(plan_id, library)


@dataclass
class WaitingPlan:
    """A plan that waits. Implements `Waiting`."""

    id: str
    library: Library

    def show(self) -> Iterable[str]:
        """Return the plan; of a damaged one what is wrong with it."""
        try:
            plan = PendingPlans(self.library).read(self.id)
        except UnknownPlanError as error:
            return [str(error)]
        return [f"{self.id}: {render_plan(plan)}"]

    def describe(self) -> Mapping[str, object]:
        """Return the plan as a table."""
        try:
            plan = PendingPlans(self.library).read(self.id)
        except UnknownPlanError as error:
            return {"id": self.id, "problem": str(error)}
        figures = {"summary": summarize_plan(plan), "hosts": plan.hosts} | plan_table(plan)
        return {"id": self.id} | figures

    def keep(self) -> str:
        """Fetch what was shown; ask again if it leads elsewhere or is more."""
        # Imported here: other reviews do without what fetches.
        from llm_kb.references.fetch.create import carry_out  # noqa: PLC0415

        shown = PendingPlans(self.library).read(self.id)

        def approve(plan: Plan) -> bool:
            if plan == shown:
                return True
            say(render_plan(plan))
            if not can_ask():
                raise PendingPlans(self.library).ask_later(plan)
            return ask("Fetch this?")

        with show_progress() as progress:
            created = carry_out(self.library, self.id, approve, progress)
        for warning in created.get("warnings", ()):
            say(f"warning: {warning}")
        return f"{created['topic_id']}: {count(created['file_count'], 'page')}"

    def reject(self) -> str:
        """Delete the plan."""
        if not PendingPlans(self.library).drop(self.id):
            raise UnknownPlanError(self.id, "it was used or dropped already")
        return f"Rejected: {self.id}"

    def edit(self) -> str:
        """Refuse: what a person did not see is not fetched."""
        raise KbError("a plan is not edited: reject it, and let the model ask for something else")
