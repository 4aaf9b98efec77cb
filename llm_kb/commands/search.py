"""`llm kb search`: find the passages that answer a question."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from shutil import get_terminal_size

import click

from llm_kb.config.workspace import find_cwd
from llm_kb.errors import join_names
from llm_kb.files.atomic import WriteError, replace_file
from llm_kb.host.rewriting import rewrite_question
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_user_dir
from llm_kb.knowledge_base.subject_list import name_file
from llm_kb.knowledge_base.tool_text import DEFAULT_LIMIT
from llm_kb.rendering.passages import Passage, Passages, find_notes
from llm_kb.rendering.plain_text import MAX_NAMED, command_line, count_columns, wrap_prose
from llm_kb.terminal import options, output
from llm_kb.terminal.screen import draw_progress, is_terminal, style
from llm_kb.texts.formats import find_converted, find_format
from llm_kb.texts.safe import visible_line, visible_text

_NOWHERE = "no text that was searched has a word of that; try different or fewer words"


ENDS_OF_INPUT = 1_000_000
"""Bytes of standard input that are kept of its beginning and of its end."""


def _read_query(ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str:
    """Return the question of a search, which may be on standard input."""
    if ctx.resilient_parsing:
        return ""
    query = " ".join(words)
    if words == ("-",) or (not words and not is_terminal(sys.stdin)):
        query = _read_ends_of_input()
    if not words and not query:
        raise click.UsageError("Missing argument 'QUERY...'.", ctx)
    return query


def _read_ends_of_input() -> str:
    """Return the beginning and the end of standard input.

    All of it is read: a program whose output is no longer read is killed.
    """
    if sys.stdin is None or sys.stdin.closed:
        return ""
    first, last = sys.stdin.buffer.read(ENDS_OF_INPUT), b""
    while block := sys.stdin.buffer.read(ENDS_OF_INPUT):
        last = (last + block)[-ENDS_OF_INPUT:]
    return (first + last).decode("utf-8", "replace")


@click.command()
@click.argument("query", nargs=-1, metavar="[QUERY]...", callback=_read_query)
@click.option(
    "topics",
    "-t",
    "--topic",
    multiple=True,
    metavar="TOPIC",
    help="Search this topic only",
    shell_complete=options.complete_topic,
)
@click.option(
    "-n",
    "--count",
    default=DEFAULT_LIMIT,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of passages",
)
@click.option("--all", "all_", is_flag=True, help="List what fetched topics have, too, below that")
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    help="Let this model write QUERY in the words of an answer, then search for that",
)
@click.option("-v", "--verbose", is_flag=True, help="Show what that model is sent")
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@options.kb_cfg_option
def search(
    query: str,
    topics: tuple[str, ...],
    count: int,
    all_: bool,
    model: str | None,
    verbose: bool,
    json_: bool,
    kb_cfg: tuple[str, ...],
) -> None:
    """
    Find the passages that answer QUERY, the best first

    Every topic in the menu is searched, by words and what these mean, also those that were
    fetched here; -t searches others, and --all lists what they have below the rest. Hidden
    and disabled subjects are never found. Each passage has its address for `learn` and the
    headings above it; a terminal also shows its file and line, and breaks long lines of
    prose between words. The exit status is 1 if nothing is found.

    With -m, or `rewrite` of [kb] in your own kb.toml, a model first writes the question as
    a sentence of its answer with likely words, and these are searched: people ask in other
    words than texts answer in. It is sent the question and the menu, which -v shows.

    Without QUERY, or if it is '-', standard input is searched for; of a long log the
    beginning and the end count. A query such as --no-color follows '--'.

    \b
        llm kb search how do we review code
        llm kb search -t project -n 3 deadline
        llm kb search -m gpt-4o-mini why is my build slow
        make 2>&1 | llm kb search
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    if model := model or kb.config.rewrite:
        query, note = rewrite_question(kb, query, model, output.say if verbose else None)
        output.say(f"llm-kb: {note}")
    find = partial(kb.find_passages, query, limit=count, progress=draw_progress("Indexing"))
    found = find(topics=topics)
    fetched = (
        [each for each in found.unsearched if kb.find_topic(each).config.kind.is_users]
        if all_
        else []
    )
    if fetched:
        found = _join(found, find(topics=fetched))
    if found.passages:  # else all of them may be why
        notices = tuple(_choose_unsaid(found.notices, str(kb.config.workspace)))
        found = replace(found, notices=notices)
    notes = list(find_notes(found))
    is_weak = bool(found.passages and found.counts)
    _say_all(notes if is_weak else ())  # before somebody believes the passages
    if json_:
        output.show_json([_as_dict(passage) for passage in found.passages])
    else:
        output.show("\n".join(_render(kb, passage) for passage in found.passages), nl=False)
        if found.passages and is_terminal(sys.stdout):
            output.show(f"\n{style(_say_next(found.passages, count), dim=True)}")
    if not found.passages:
        nowhere = kb.explain_nothing() if not topics and not kb.menu_ids else found.why_nothing
        _say_all([visible_line(nowhere or _NOWHERE)])
    _say_all(() if is_weak else notes)
    if found.unknown and found.unsearched:
        output.say("llm-kb: -t TOPIC searches one of them, --all the fetched ones too")
    if not found.passages:
        raise SystemExit(1)


def _say_all(notes: Iterable[str]) -> None:
    for note in notes:
        output.say(f"llm-kb: {note}")


def _join(found: Passages, fetched: Passages) -> Passages:
    """Return the result for the workspace with that for fetched topics below it."""
    unknown = [word for word in found.unknown if word in fetched.unknown]
    return replace(
        found,
        passages=(*found.passages, *fetched.passages),
        unknown=tuple(unknown),
        replaced=tuple(pair for pair in found.replaced if pair[0] in unknown),
        counts=(),
        unsearched=fetched.unsearched and tuple({*found.unsearched} & {*fetched.unsearched}),
        notices=(*found.notices, *fetched.notices),
    )


def _choose_unsaid(notices: Iterable[str], workspace: str) -> Iterator[str]:
    """Yield the notices that no search of this workspace has printed today, and record them."""
    if not notices:
        return
    path, today = find_user_dir() / "kb" / "notices", datetime.now(timezone.utc).date().isoformat()
    said: list[str] = []
    with suppress(OSError, ValueError):
        said = path.read_text().split()
    said = said if said[:1] == [today] else [today]
    for notice in notices:
        text = f"{workspace}\0{notice}".encode("utf-8", "surrogateescape")
        key = hashlib.sha256(text).hexdigest()
        if key not in said:
            said.append(key)
            yield notice
    with suppress(WriteError, OSError):  # it is printed again
        replace_file(path, "\n".join(said).encode())


def _as_dict(passage: Passage) -> dict[str, object]:
    return {
        "topic": passage.topic,
        "slug": passage.name,
        "path": passage.path,
        "address": passage.address,
        "lines": f"{passage.first_line}-{passage.last_line}",
        "title": passage.title,
        "score": passage.score,
        "text": passage.text,
        "also_in": list(passage.also_in),
        "origin": passage.origin,
        "preloaded": passage.is_preloaded,
    }


def _render(kb: KnowledgeBase, passage: Passage) -> str:
    """Return a passage for people: its address, the headings above it, its copies, its text."""
    address = visible_line(f"{passage.topic}/{passage.address}")
    copies = join_names(passage.also_in, MAX_NAMED) if passage.also_in else ""
    notes = [passage.above, f"also in {copies}" if copies else "", passage.origin or ""]
    lines, text = [visible_line(note) for note in notes if note], visible_text(passage.text)
    if is_terminal(sys.stdout):
        width, place = get_terminal_size().columns, visible_line(_name_line(kb, passage))
        gap = "  " if count_columns(f"{address}  {place}") <= width else "\n  "
        address = f"{style(address, fg='cyan')}{style(gap + place, dim=True)}"
        lines = [style(wrap_prose(line, width, is_markdown=False), dim=True) for line in lines]
        known = find_format(passage.path, text)
        if known and known.is_flowing:
            text = wrap_prose(text, width, is_markdown=known.is_markdown)
    return "\n".join([address, *lines, text, ""])


def _name_line(kb: KnowledgeBase, passage: Passage) -> str:
    """Return the file and line of a passage, which a terminal or an editor can follow."""
    file = name_file(kb.find_topic(passage.topic), passage.path, find_cwd() or Path("/"))
    # An editor that follows it would look for a line of the Markdown in the notebook.
    return file if find_converted(passage.path) else f"{file}:{passage.first_line}"


def _say_next(passages: Sequence[Passage], most: int) -> str:
    """Return what to type to read all of the first passage's part, and to see more passages."""
    address = visible_line(f"{passages[0].topic}/{passages[0].address}")
    more = f"more: -n {max(10, 2 * most)}; " if len(passages) >= most else ""
    return f"{more}open the first: {command_line('show', address)}"
