"""The reference topics of a user: create, refresh, change, verify and delete them.

The one place in this package where plans, approvals, topics and their index meet.
Whoever calls decides what an approval is: a callback that is handed the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from llm_kb.errors import KbError
from llm_kb.references.catalog import references_root
from llm_kb.references.errors import (
    DeniedError,
    NotIndexedError,
    PlanChangedError,
    TopicExistsError,
)
from llm_kb.references.fetch.outcomes import SILENT, Created, Progress, Refreshed
from llm_kb.references.fetch.publish import ApproveGrowth, Publisher
from llm_kb.references.plan.make import make_plan
from llm_kb.references.plan.pending import PendingPlans
from llm_kb.references.plan.plan import Plan, TopicRequest
from llm_kb.references.plan.remotes import Remotes, git_policy
from llm_kb.references.sources.addresses import Resolver, system_resolver
from llm_kb.references.sources.git import Repositories
from llm_kb.references.topic.provenance import Differences, compare
from llm_kb.references.topic.store import Store
from llm_kb.references.topic.topic_file import TopicFile, format_time
from llm_kb.references.topic.topic_text import change_topic_file, with_heading
from llm_kb.search.index.database import IndexUnusableError, discard
from llm_kb.search.index.index import open_index, update_index
from llm_kb.search.index.vectors import Embedder, EmbeddingError, update_vectors
from llm_kb.subjects.topics import Config, References

Approve = Callable[[Plan], bool]
"""Asks the operator about a plan; False denies it. It may raise to answer later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All reference topics below one directory, under one user's settings."""

    root: Path
    settings: References = field(default_factory=References)
    find_embedder: Callable[[], Embedder | None] = lambda: None
    """Finds the user's embedding model, once something is to be embedded."""
    resolver: Resolver = field(default=system_resolver)
    clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)

    @property
    def store(self) -> Store:
        """The directories of the topics."""
        return Store(self.root)

    @property
    def pending(self) -> PendingPlans:
        """The plans that wait for the operator."""
        return PendingPlans(
            directory=self.root / ".pending", protocols=self.settings.allow_protocols
        )

    def topics(self) -> tuple[list[TopicFile], list[str]]:
        """Return the topics that can be read, sorted by id, and what is wrong with the others."""
        topics: list[TopicFile] = []
        problems = list(filter(None, [self.store.find_problem()]))
        for topic_id in self.store.ids():
            try:
                topics.append(self.store.read(topic_id))
            except KbError as error:
                problems.append(str(error))
        return topics, problems

    def plan(self, request: TopicRequest, progress: Progress = SILENT) -> Plan:
        """Ask the sources what they hold; nothing is kept of it."""
        with self._repositories() as repositories:
            return make_plan(request, self._remotes(repositories), progress.asking)

    def create(
        self,
        request: TopicRequest,
        approve: Approve,
        progress: Progress = SILENT,
        *,
        resumes: bool = False,
    ) -> Created:
        """Plan a topic, have the plan approved, and carry it out.

        A plan approved before under `llm kb references approve` is not asked about
        again. Where the sources change between plan and fetch the new plan is asked
        about, once. With `resumes`, a request that has made its topic already is
        answered with that topic: a chain that was paused for the approval asks
        again after it was given. Raises KbError, TopicExistsError among them.
        """
        self.store.clean()
        if self.store.exists(request.topic_id):
            if resumes and self._is_made(request):
                return self._made(request)
            raise self._taken(request)
        self.store.require_free(request.topic_id)
        with self._repositories() as repositories:
            remotes = self._remotes(repositories)
            plan = make_plan(request, remotes, progress.asking)
            self._ask(plan, approve)
            try:
                return self._carry_out(plan, remotes, progress)
            except PlanChangedError:
                plan = make_plan(request, remotes, progress.asking)
                self._ask(plan, approve)
                return self._carry_out(plan, remotes, progress)

    def carry_out(self, plan_id: str, progress: Progress = SILENT) -> Created:
        """Carry out a pending plan: the operator's approval. It is used up, unless it fails."""
        plan = self.pending.take(plan_id)
        try:
            with self._repositories() as repositories:
                return self._carry_out(plan, self._remotes(repositories), progress)
        except BaseException:
            self.pending.add(plan, format_time(self.clock()))
            if self._is_made(plan.request):  # and it was the index that failed
                self._settle(plan.request)
            raise

    def refresh(
        self, topic_id: str, approve: ApproveGrowth, progress: Progress = SILENT
    ) -> Refreshed:
        """Fetch what has changed of a topic's sources.

        `approve` is asked, with the reason, only when it now leads to another host
        or has grown far beyond what was fetched before. Raises KbError; the topic is
        then as it was.
        """
        self.store.clean()
        with self.store.lock(topic_id, create=False), self._repositories() as repositories:
            publisher = self._publisher(self._remotes(repositories), progress)
            refreshed = publisher.refresh(topic_id, approve)
        # Also where nothing has changed: an earlier run may have been interrupted, or had no
        # embedding model.
        _, problems = self._index(topic_id, progress)
        return replace(refreshed, warnings=(*refreshed.warnings, *problems))

    def update(self, topic_id: str, changes: dict[str, Any], body: str | None = None) -> TopicFile:
        """Change what a topic's owner says of it; the fetched files stay as they are."""
        with self.store.lock(topic_id, create=False):
            where = str(self.store.directory(topic_id))
            topic = self.store.read(topic_id)
            body = None if body is None else with_heading(topic.title, body)
            text = change_topic_file(self.store.read_text(topic_id), where, changes, body)
            self.store.write_text(topic_id, text)
            return self.store.read(topic_id)

    def verify(self, topic_id: str) -> Differences:
        """Compare a topic's files with the record of what was fetched.

        A topic that cannot be read differs: the result says why. Raises
        UnknownReferenceError alone.
        """
        self.store.require(topic_id)
        problems = []
        try:
            self.store.read(topic_id)
        except KbError as error:
            problems.append(str(error))
        try:
            recorded = self.store.read_provenance(topic_id).files
        except KbError as error:
            return Differences(problems=(*problems, str(error)))
        found = compare(recorded, self.store.hash_fetched(topic_id))
        return replace(found, problems=tuple(problems))

    def delete(self, topic_id: str) -> None:
        """Delete a topic and its index."""
        with self.store.lock(topic_id, create=False):
            self.store.require(topic_id)
            self.store.delete(topic_id)
            discard(self.store.index_path(topic_id))

    def _carry_out(self, plan: Plan, remotes: Remotes, progress: Progress) -> Created:
        request = plan.request
        with self.store.lock(request.topic_id):
            if self.store.exists(request.topic_id):
                raise self._taken(request)
            staged = self._publisher(remotes, progress).create(plan)
            self._settle(request)
        chunks, problems = self._index(request.topic_id, progress)
        return Created(
            topic_id=request.topic_id,
            file_count=len(staged.files),
            chunk_count=chunks,
            warnings=(*staged.warnings, *problems),
        )

    def _index(self, topic_id: str, progress: Progress) -> tuple[int, list[str]]:
        """Bring a topic's index up to date; return its chunks, and what went wrong.

        Embedding may fail, for want of a key or a network: search does without. Raises
        NotIndexedError where there is no index at all.
        """
        try:
            with open_index(self.store.documents(topic_id)) as index:
                chunks = index.update(progress.indexing).chunks
                try:
                    if embedder := self.find_embedder():
                        update_vectors(
                            index, embedder.model, embedder.embed, progress=progress.embedding
                        )
                except EmbeddingError as error:
                    return chunks, [str(error)]
        except IndexUnusableError as error:
            raise NotIndexedError(topic_id, str(error)) from error
        return chunks, []

    def _ask(self, plan: Plan, approve: Approve) -> None:
        if not self.pending.take_approved(plan) and not approve(plan):
            raise DeniedError(plan.request.title, plan.summary)

    def _made(self, request: TopicRequest) -> Created:
        """Return what came of a request that was carried out before."""
        report = update_index(self.store.documents(request.topic_id))
        return Created(
            topic_id=request.topic_id,
            file_count=len(self.store.read_provenance(request.topic_id).files),
            chunk_count=report.chunks,
        )

    def _is_made(self, request: TopicRequest) -> bool:
        """Tell whether there is a topic that this very request has made."""
        if not self.store.exists(request.topic_id):
            return False
        return self.store.read_provenance(request.topic_id).request == request.digest

    def _taken(self, request: TopicRequest) -> TopicExistsError:
        """Return why a topic cannot be made where there is one; raise what is wrong with that."""
        return TopicExistsError(request.topic_id, self.store.read(request.topic_id).title)

    def _settle(self, request: TopicRequest) -> None:
        """Drop the plans that waited to do what was done now.

        Left there, one of them could bring the topic back after it was deleted.
        """
        done = request.digest
        for waiting in self.pending.list():
            if waiting.plan.request.digest == done:
                self.pending.drop(waiting.plan.id)

    def _repositories(self) -> Repositories:
        return Repositories(git_policy(self.settings, self.resolver))

    def _remotes(self, repositories: Repositories) -> Remotes:
        return Remotes(settings=self.settings, repositories=repositories, resolver=self.resolver)

    def _publisher(self, remotes: Remotes, progress: Progress) -> Publisher:
        return Publisher(store=self.store, remotes=remotes, clock=self.clock, progress=progress)


def open_library(config: Config, user_dir: Path) -> Library:
    """Return the reference topics of a user, under the settings of a configuration."""
    return Library(root=references_root(config.references, user_dir), settings=config.references)
