"""A plan as the operator reads it before approving; no text in it can deceive. Pure.

Models and servers write titles, addresses, paths and notes. None of them can add a line,
repaint or hide others, pose as another host, or push the first lines off the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from llm_kb.references.plan.plan import Plan, PlannedSource, format_about
from llm_kb.references.sources.rules import host_and_port, show_host
from llm_kb.rendering.plain_text import count, shorten, visible_line

MOST_NOTES = 10
MOST_HOSTS = 10
WIDTH = 300
"""Characters shown of an address, of a list of paths and of a note."""


def summarize_plan(plan: Plan) -> str:
    """Return one line for people: `DioxusLabs/dioxus (1,247 files, ~98 MB) + 1 web page`."""
    if not plan.is_measured:
        return f"{count(len(plan.sources), 'source')} not asked yet"
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
        return "not asked yet"
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
