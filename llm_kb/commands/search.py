"""`llm kb search`: find the passages that answer a question."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from shutil import get_terminal_size

import click

from llm_kb.config.workspace import find_cwd
from llm_kb.errors import join_names
from llm_kb.host.rewriting import search_rewritten
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.tool_text import DEFAULT_LIMIT
from llm_kb.rendering.passages import Passage, describe_cut, find_notes
from llm_kb.rendering.plain_text import (
    MAX_NAMED,
    command_line,
    count,
    count_columns,
    cut_columns,
    fold_columns,
    name_place,
    wrap_prose,
)
from llm_kb.terminal import options, output
from llm_kb.terminal.screen import draw_progress, is_terminal, style
from llm_kb.texts.document import name_lines
from llm_kb.texts.formats import find_converted, find_format
from llm_kb.texts.safe import visible_line, visible_text

MOST_ROWS = 12
"""The most lines of the first passage on a terminal; half of it are the fewest."""

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
    "limit",
    default=DEFAULT_LIMIT,
    show_default=True,
    type=click.IntRange(1),
    help="Maximum number of passages",
)
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    help="Let this model write QUERY in the words of an answer, then search for that",
)
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@options.kb_cfg_option
def search(
    query: str,
    topics: tuple[str, ...],
    limit: int,
    model: str | None,
    json_: bool,
    kb_cfg: tuple[str, ...],
) -> None:
    """
    Find the passages that answer QUERY, the best first

    Every topic in the menu is searched, by words and what these mean, also those that were
    fetched here; -t searches others. Hidden and disabled subjects are never found. Each
    passage has its address, which other commands take. A terminal shows some lines of the
    first and a sentence of each other one; a pipe gets all of them whole. The exit status
    is 1 if nothing is found.

    With -m, or `rewrite` of [kb] in your own kb.toml, a model first writes the question as
    a sentence of its answer with likely words, and these are searched: people ask in other
    words than texts answer in. It is sent the question and the menu.

    Without QUERY, or if it is '-', standard input is searched for; of a long log the
    beginning and the end count. A query such as --no-color follows '--'.

    \b
        llm kb search how do we review code
        llm kb search -t project -n 3 deadline
        llm kb search -m gpt-4o-mini why is my build slow
        make 2>&1 | llm kb search
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    progress = draw_progress("Indexing")
    find = partial(kb.find_passages, topics=topics, limit=limit, progress=progress)
    if model := model or kb.config.rewrite:
        found, note = search_rewritten(kb, query, model, find)
        output.say(f"llm-kb: {note}")
    else:
        found = find(query)
    notes = [f"llm-kb: {note}" for note in find_notes(found, 1 if found.passages else MAX_NAMED)]
    if not found.passages:
        nowhere = kb.explain_nothing() if not topics and not kb.menu_ids else found.why_nothing
        notes.insert(0, f"llm-kb: {visible_line(nowhere or _NOWHERE)}")
    is_weak = bool(found.passages and found.counts)
    if is_weak:  # said before somebody believes the passages
        output.say("\n".join(notes))
    if json_:
        output.show_json([_as_dict(passage) for passage in found.passages])
    else:
        output.show("\n".join(_iter_shown(kb, found.passages)), nl=False)
    if notes and not is_weak:
        output.say("\n".join(notes))
    if not found.passages:
        raise SystemExit(1)


def _iter_shown(kb: KnowledgeBase, passages: Sequence[Passage]) -> Iterator[str]:
    """Yield each passage for people; a terminal gets less of it."""
    if passages and is_terminal(sys.stdout):
        for lines in _render_for_eyes(kb, passages, get_terminal_size().columns):
            yield "".join(f"{line}\n" for line in lines)
    else:
        yield from (_render(kb, passage) for passage in passages)


def _as_dict(passage: Passage) -> dict[str, object]:
    return {
        "topic": passage.topic,
        "slug": passage.name,
        "path": passage.path,
        "address": passage.address,
        "lines": f"{passage.first_line}-{passage.last_line}",
        "title": passage.title,
        "text": passage.text,
        "also_in": list(passage.also_in),
        "origin": passage.origin,
        "preloaded": passage.is_preloaded,
    }


def _name(passage: Passage) -> str:
    return visible_line(f"{passage.topic}/{passage.address}")


def _find_place(kb: KnowledgeBase, passage: Passage) -> str:
    """Return the file and line of a passage, which an editor can follow; empty without a file."""
    opened = kb.find_topic(passage.topic)
    file = str(opened.topic.find_file(passage.path) or opened.config.root / passage.path)
    if not os.path.isfile(file):  # noqa: PTH113 - it never raises
        return ""
    name = visible_line(name_place(file, find_cwd() or Path("/")))
    # An editor would look for a line of the Markdown in the notebook.
    return name if find_converted(passage.path) else f"{name}:{passage.first_line}"


def _list_notes(passage: Passage) -> list[str]:
    """Return the headings above a passage, its copies, and its origin."""
    copies = join_names(passage.also_in, MAX_NAMED) if passage.also_in else ""
    notes = (passage.above, f"also in {copies}" if copies else "", passage.origin or "")
    return [visible_line(note) for note in notes if note]


def _render(kb: KnowledgeBase, passage: Passage) -> str:
    """Return a whole passage with its address and place, as a pipe gets it."""
    first = f"{_name(passage)}  {_find_place(kb, passage)}".rstrip()
    before, after = (
        [describe_cut(passage, lines, lambda name: command_line("show", visible_line(name)))]
        if lines
        else []
        for lines in (passage.before, passage.after)
    )
    text = visible_text(passage.text)
    return "\n".join([first, *_list_notes(passage), *before, text, *after, ""])


def _render_for_eyes(
    kb: KnowledgeBase, passages: Sequence[Passage], width: int
) -> Iterator[Sequence[str]]:
    """Yield the lines of each passage for a terminal: of the first the text, of others a sentence.

    Four take at most 24 lines, unless addresses are very long.
    """
    first, *others = passages
    name, place = _name(first), _find_place(kb, first)
    gap = "  " if count_columns(f"{name}  {place}") <= width else "\n  "
    head = f"{style(name, fg='cyan')}{style(gap + place, dim=True) if place else ''}"
    notes = [cut_columns(note, width) for note in _list_notes(first)]
    advice = f"… 10,000 lines more: llm kb show {name}"
    names = [name, *map(_name, others), *([place] if "\n" in gap else []), advice]
    wrapped = sum(len(fold_columns(each, width)) - 1 for each in names)
    wrapped += ("\n" in gap) + max(0, len(notes) - 1)
    rows, left_out = _choose_rows(first, width, max(MOST_ROWS // 2, MOST_ROWS - wrapped))
    below = [style(left_out, dim=True)] if left_out else []
    yield [head, *(style(note, dim=True) for note in notes), *rows, *below]
    for passage in others:
        heading = visible_line(passage.title.rpartition(" > ")[2])
        key = visible_line(passage.key)
        said = f"{heading}: {key}" if heading and heading not in key else key
        yield [style(_name(passage), fg="cyan"), cut_columns(f"  {said}", width)]


def _choose_rows(passage: Passage, width: int, most: int) -> tuple[list[str], str]:
    """Return the rows of a passage around its key sentence, and a line that names what was cut."""
    text = visible_text(passage.text)
    known = find_format(passage.path, text)
    lines = text.split("\n")
    if known and known.is_flowing:
        lines = wrap_prose(text, width, is_markdown=known.is_markdown)
    rows = [
        (number, row)
        for number, line in enumerate(lines, passage.first_line)
        for piece in line.split("\n")
        for row in fold_columns(piece, width)
    ]
    words = set(passage.key.split())
    near = [len(words & {*row.split()}) * (number >= passage.key_line) for number, row in rows]
    at = near.index(max(near))
    start = 0 if at < most - 1 else min(at - most // 3, max(0, len(rows) - most))
    chosen, rest = rows[start : start + most], rows[start + most :]
    while len(chosen) > 1 and not chosen[-1][1].strip():
        rest = [chosen.pop(), *rest]
    last = chosen[-1][0]
    following = rest[0][0] if rest and rest[0][0] == last else last + 1
    begin = passage.before[0] if passage.before else passage.first_line
    end = passage.after[1] if passage.after else passage.last_line
    number = end + 1 - following
    if start:
        following, number = begin, end + 1 - begin - len({line for line, _ in chosen})
    address = f"{passage.name}#{name_lines(following, end)}"
    command = command_line("show", visible_line(f"{passage.topic}/{address}"))
    left_out = f"… {count(number, 'line')} more: {command}" if number > 0 else ""
    return [row for _, row in chosen], left_out
