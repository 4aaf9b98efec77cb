"""What is told of topics and hits: the same tables for models and for `--json`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from llm_kb.references.fetch.outcomes import Created, Refreshed
from llm_kb.references.plan.pending import PendingPlan
from llm_kb.references.plan.plan import plan_table
from llm_kb.references.sources.records import source_table
from llm_kb.references.topic.provenance import Provenance
from llm_kb.references.topic.topic_file import TopicFile, format_time, render_origin
from llm_kb.references.topic.topic_search import TopicHit
from llm_kb.search.hits import Hit
from llm_kb.search.search import SearchResult


def topic_entry(topic: TopicFile, now: datetime) -> dict[str, Any]:
    """Return a topic as `reference_topic_list` has it."""
    return {
        "topic_id": topic.id,
        "title": topic.title,
        "status": topic.status_at(now).value,
        "is_stale": topic.is_stale(now),
        "fetched_at": _time(topic.fetched_at),
        "max_age_days": topic.max_age_days,
        "created_by_ghost": topic.created_by.get("ghost"),
        "source_count": len(topic.sources),
        "file_count": len(topic.files),
        "tags": list(topic.tags),
    }


def topic_details(topic: TopicFile, now: datetime, path: str) -> dict[str, Any]:
    """Return all there is to say of a topic, for `show`."""
    return topic_entry(topic, now) | {
        "created_at": _time(topic.created_at),
        "created_by": dict(topic.created_by),
        "stale_since": _time(topic.stale_since(now)),
        "trust_score": topic.trust_score,
        "sources": [source_table(source) for source in topic.sources],
        "files": list(topic.files),
        "body": topic.body,
        "path": path,
    }


def topic_hit_entry(hit: TopicHit, now: datetime) -> dict[str, Any]:
    """Return a topic as `reference_topic_search` has it."""
    return {
        "topic_id": hit.topic.id,
        "title": hit.topic.title,
        "status": hit.topic.status_at(now).value,
        "is_stale": hit.topic.is_stale(now),
        "fetched_at": _time(hit.topic.fetched_at),
        "tags": list(hit.topic.tags),
        "score": hit.score,
        "snippet": hit.snippet,
    }


def search_answer(
    result: SearchResult,
    topics: Mapping[str, TopicFile],
    provenance: Mapping[str, Provenance],
    now: datetime,
) -> dict[str, Any]:
    """Return what `reference_search` found: the legs that ran, and the hits, best first."""
    return {
        "legs": list(result.legs),
        "results": [
            hit_entry(hit, topics[hit.topic], provenance[hit.topic], now) for hit in result.hits
        ],
    }


def hit_entry(hit: Hit, topic: TopicFile, provenance: Provenance, now: datetime) -> dict[str, Any]:
    """Return one hit: where it stands, where it came from, its text; stale ones say so."""
    entry: dict[str, Any] = {
        "topic_id": hit.topic,
        "file": hit.path,
        "lines": f"{hit.first_line}-{hit.last_line}",
        "origin": render_origin(topic, provenance.files.get(hit.path), now),
        "title": hit.title,
        "score": hit.score,
        "text": hit.text,
    }
    if hit.copies:
        entry["also_in"] = [f"{copy.topic}/{copy.path}" for copy in hit.copies]
    since = topic.stale_since(now)
    return entry | ({"stale_since": format_time(since)} if since else {})


def created_answer(created: Created) -> dict[str, Any]:
    """Return what `reference_topic_create` says: the seed's fields, and what went wrong."""
    answer: dict[str, Any] = {
        "topic_id": created.topic_id,
        "file_count": created.file_count,
        "chunk_count": created.chunk_count,
    }
    return answer | ({"warnings": list(created.warnings)} if created.warnings else {})


def refreshed_answer(refreshed: Refreshed) -> dict[str, Any]:
    """Return what a refresh did."""
    return {
        "topic_id": refreshed.topic_id,
        "changed": refreshed.changed,
        "added": refreshed.added,
        "modified": refreshed.modified,
        "removed": refreshed.removed,
        "restored": refreshed.restored,
        "file_count": refreshed.file_count,
        "warnings": list(refreshed.warnings),
    }


def pending_entry(pending: PendingPlan) -> dict[str, Any]:
    """Return a plan that waits, as `pending --json` has it."""
    plan = pending.plan
    return {
        "id": plan.id,
        "title": plan.request.title,
        "summary": plan.summary,
        "sources": plan_table(plan)["sources"],
        "stored_at": pending.stored_at,
        "is_approved": pending.is_approved,
    }


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None
