"""`llm kb list`, `learn`, `show`, `prompt`, `used`: what there is, what is sent, what was read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shutil import get_terminal_size
from typing import Any

import click

from llm_kb.host.coding_agents import name_command
from llm_kb.host.log import read_turns
from llm_kb.knowledge_base import subject_list
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.open_topic import EmptyTopicError, OpenTopic
from llm_kb.knowledge_base.open_topics import OpenTopics
from llm_kb.rendering.plain_text import estimate_tokens
from llm_kb.rendering.section import Menu, render_section
from llm_kb.subjects.patterns import split_knowledge
from llm_kb.subjects.selection import Selection
from llm_kb.terminal import configured, options, output
from llm_kb.terminal.screen import is_terminal, style
from llm_kb.upkeep.usage import count_uses, render_usage


@click.command("list")
@click.argument("topic", required=False, shell_complete=options.complete_topic)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=options.complete_slug)
@click.option("all_", "--all", is_flag=True, help="Include hidden, disabled and skipped subjects")
@click.option(
    "queries",
    "-q",
    "--query",
    multiple=True,
    help="Only topics whose name or introduction has this, or subjects of TOPIC whose slug"
    " has it; repeat to narrow",
)
@click.option("json_", "--json", is_flag=True, help="Output as a JSON array")
@click.option("nl", "--nl", is_flag=True, help="Output as newline-delimited JSON")
@options.knowledge_options
def list_(
    topic: str | None,
    patterns: tuple[str, ...],
    all_: bool,
    queries: tuple[str, ...],
    json_: bool,
    nl: bool,
    knowledge: tuple[str, ...],
    kb_cfg: tuple[str, ...],
) -> None:
    """
    List the topics, or the subjects of TOPIC that match a PATTERN

    More than 200 subjects are folded by directory; --all lists each of them.
    Tokens are estimated at four bytes each. With -k, subjects are shown as
    they would be in a request with that -k.

    \b
        llm kb list
        llm kb list project --all
        llm kb list project 'maintainers/*'
        llm kb list project --json
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    if topic is not None:
        groups = kb.group_patterns(topic, patterns)
        each = [
            subject_list.list_topic(kb.topics[i], g, everything=all_) for i, g in groups.items()
        ]
        listed = [_keep_slugs(listed, queries) if queries else listed for listed in each]
        if not (json_ or nl):
            listed = [subject_list.add_texts(kb.topics[t.topic.id], t, kb.config) for t in listed]
        records = [record for each in listed for record in each.subject_dicts()]
    else:
        listed = [t for t in subject_list.list_topics(kb, everything=all_) if _is_about(t, queries)]
        records = [t.as_dict() for t in listed]
    if json_ or nl:
        (output.show_json_lines if nl else output.show_json)(records)
        return
    width = get_terminal_size().columns if is_terminal(sys.stdout) else None
    if topic is None:
        lines = [_style_topic(line) for line in subject_list.render_topics(listed, width)]
    else:
        lines = [
            _style(line) for each in listed for line in subject_list.render_subjects(each, width)
        ]
    # One write for all of them: thousands of small ones take longer than the walk.
    output.show("".join(f"{line}\n" for line in lines), nl=False)
    if not any(opened.config.is_offered for opened in kb.topics.values()):
        output.say(f"llm-kb: {kb.explain_nothing()}")
    elif queries and not records:
        output.say(f"llm-kb: {_explain_nothing(topic, queries)}")


def _is_about(listed: subject_list.ListedTopic, queries: Sequence[str]) -> bool:
    """Tell whether a topic's id, title or introduction contains every query."""
    topic = listed.topic
    return _has_all(f"{topic.id}\n{topic.title or ''}\n{topic.introduction or ''}", queries)


def _has_all(text: str, queries: Sequence[str]) -> bool:
    """Tell whether a text contains every query, ignoring case."""
    return all(query.casefold() in text.casefold() for query in queries)


def _keep_slugs(
    listed: subject_list.ListedTopic, queries: Sequence[str]
) -> subject_list.ListedTopic:
    """Return a topic with only the subjects whose slug contains every query."""
    kept = [subject for subject in listed.subjects if _has_all(subject.name, queries)]
    return replace(listed, subjects=kept, skipped=())


def _explain_nothing(topic: str | None, queries: Sequence[str]) -> str:
    searched = "topic's name" if topic is None else "slug"
    words = " and ".join(map(repr, queries))
    return f"no {searched} has {words}; `llm kb search` looks into the texts"


def _style_topic(line: str) -> str:
    """Return the line of a topic with its id bold, and a note below it dim."""
    id_, gap, rest = line.partition("  ")
    return style(id_, bold=True) + gap + rest if id_ else style(line, dim=True)


def _style(line: str) -> str:
    """Return what no model finds by itself dim; the host strips it in pipes."""
    dim = line.endswith(("  hidden", "  disabled")) or line.lstrip().startswith("skipped ")
    return style(line, dim=True) if dim else line


@click.command()
@click.argument("topic", shell_complete=options.complete_topic)
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...", shell_complete=options.complete_slug)
@options.knowledge_options
def learn(
    topic: str, patterns: tuple[str, ...], knowledge: tuple[str, ...], kb_cfg: tuple[str, ...]
) -> None:
    """
    Print what the learn tool returns for TOPIC and these PATTERNs

    Without a PATTERN it lists the subjects that can be learned. With -k, it
    answers as it would in a request with that -k.

    \b
        llm kb learn project
        llm kb learn project code-quality
        llm kb learn project 'maintainers/*' README
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    configured.say_withheld(kb.config)
    text = kb.learn(topic, list(patterns) or None)
    output.show_content(text, nl=not text.endswith("\n"))
    opened = None if patterns else kb.topics.get(topic)
    if opened is not None and not opened.listing.listed:
        output.say(f"llm-kb: {EmptyTopicError(opened.config, opened.listing)}")


@click.command()
@click.argument(
    "names",
    metavar="TOPIC/PATTERN...",
    nargs=-1,
    required=True,
    shell_complete=options.complete_topic_slash_slug,
)
@options.kb_cfg_option
def show(names: tuple[str, ...], kb_cfg: tuple[str, ...]) -> None:
    """
    Print subjects as they are on disk, one after the other

    Documents and notebooks are read as Markdown, and printed so. Use
    `llm kb learn` to print subjects as a model gets them.

    \b
        llm kb show project/code-quality
        llm kb show 'project/code-quality#naming'
        llm kb show 'project/maintainers/*' | wc
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    # Find all before printing any: partial output is easily mistaken for all of it.
    for opened, selection in [_find(kb, name) for name in names]:
        for data in kb.read_raw(opened, selection):
            output.show_content(data, nl=False)


def _find(kb: KnowledgeBase, name: str) -> tuple[OpenTopic, Selection]:
    """Return the topic and the subjects of a name. Raises KbError."""
    topic, pattern = split_knowledge(name)
    return kb.find_topic(topic, pattern), kb.require(topic, pattern)


@click.command()
@options.knowledge_options
@click.option("--preloaded", is_flag=True, help="Without the menu, as -k sends it without -T learn")
@click.option("--shell", is_flag=True, help="For a model that runs commands and has no such tools")
@click.option("--tokens", is_flag=True, help="Show what each part costs instead of the section")
@click.option("json_", "--json", is_flag=True, help="Output the costs as JSON")
def prompt(
    knowledge: tuple[str, ...],
    kb_cfg: tuple[str, ...],
    preloaded: bool,
    shell: bool,
    tokens: bool,
    json_: bool,
) -> None:
    """
    Print what llm -T learn adds to the system prompt

    If there is no section, the reason goes to standard error, as does a note if the menu
    was cut to fit its budget. With --shell its last lines name commands in place of tools,
    for the system prompt of an agent with a shell.

    \b
        llm kb prompt
        llm kb prompt -k 'project/maintainers/*' --preloaded
        llm kb prompt --tokens
        llm code -s "$(llm kb prompt --shell)"
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg, knowledge=knowledge)
    configured.say_withheld(kb.config)
    command = name_command() if shell else ""
    if tokens or json_:
        costs = count_costs(kb, learn=not preloaded, shell=command)
        if json_:
            output.show_json(costs)
        else:
            header, *rows = render_costs(costs).splitlines()
            rows = [style(row, bold=row.startswith("total ") or None) for row in rows]
            output.show("\n".join([style(header, dim=True), *rows]))
        return
    search = not (preloaded or shell) and kb.offers_search()
    section = kb.section(learn=not preloaded, search=search, shell=command)
    if section is not None:
        output.show_content(section)
    else:
        output.say(f"llm-kb: {kb.explain_nothing(learn=not preloaded)}")
    cuts = () if preloaded else kb.menu(command).cuts
    if cuts:
        output.say(f"llm-kb: {'; '.join(cuts)}")


def count_costs(kb: OpenTopics, *, learn: bool, shell: str = "") -> dict[str, Any]:
    """Return the estimated tokens of a request, as `llm kb prompt --json` prints them.

    These are those of the whole section, of its guides and menu, of a section with every listed
    subject and no menu (`inlined`), and the same by topic. Subjects not sent count as in `llm kb
    list`.
    """
    menu = kb.menu(shell) if learn else Menu()
    sent = {topic.id: subjects for topic, subjects in kb.preloaded}
    left = {opened.config.id: opened.left for opened in kb.left}
    topics: list[dict[str, Any]] = []
    for opened in kb.active:
        if opened.config.id in left or opened.learned.subjects:
            costs = {s.name: estimate_tokens(s.text) for s in sent.get(opened.config.id, ())}
            subjects = [{"slug": slug, "tokens": tokens} for slug, tokens in costs.items()]
            tokens = sum(costs.values())
            sizes = [opened.find_size(each) for each in left.get(opened.config.id, ())]
            inlined = tokens + estimate_tokens(sum(filter(None, sizes)))
            topics.append(
                {"id": opened.config.id, "tokens": tokens, "inlined": inlined, "subjects": subjects}
            )
    guides = kb.guides if learn else ()
    section = estimate_tokens(render_section(kb.preloaded, menu, guides) or "")
    inlined = section - menu.tokens + sum(each["inlined"] - each["tokens"] for each in topics)
    return {
        "section": section,
        "guides": [{"path": each.name, "tokens": estimate_tokens(each.text)} for each in guides],
        "menu": menu.tokens,
        "inlined": inlined,
        "topics": topics,
    }


def render_costs(costs: Mapping[str, Any]) -> str:
    """Return a table that fits 80 columns; all figures are estimates."""
    guides = [(each["path"], each["tokens"], each["tokens"]) for each in costs["guides"]]
    rows: list[tuple[str, int, int | None]] = [*guides]
    if costs["menu"]:
        rows.append(("menu", costs["menu"], None))
    for topic in costs["topics"]:
        rows.append((topic["id"], topic["tokens"], topic["inlined"]))
        rows += [(f"  {each['slug']}", each["tokens"], None) for each in topic["subjects"]]
    known = sum(each["tokens"] for each in (*costs["guides"], *costs["topics"]))
    around = costs["section"] - costs["menu"] - known
    rows += [("frame", around, around), ("total", costs["section"], costs["inlined"])]
    width = max([len(name) for name, _, _ in rows] + [7])
    lines = [f"{'':{width}}  {'sent':>9}  {'all of it':>9}   (estimated tokens)"]
    for name, tokens, inlined in rows:
        all_of_it = f"{inlined:>9,}" if inlined is not None else ""
        lines.append(f"{name:{width}}  {tokens:>9,}  {all_of_it}".rstrip())
    return "\n".join(lines)


@click.command()
@click.option("json_", "--json", is_flag=True, help="Output as JSON")
@options.kb_cfg_option
def used(json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Show what models read here, according to llm's log

    For each subject, this shows how often models read it with learn, how often their
    searches found it, and in how many conversations -k, kb: or kb-search: sent it. It also
    lists subjects that were never read, names that failed, and searches that found nothing.
    Names are resolved against today's files. Only requests of 'llm prompt' and 'llm chat' in
    this workspace count, and only logged ones.

    \b
        llm kb used
        llm kb used --json
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    usage = count_uses(kb, read_turns())
    if json_:
        output.show_json(usage)
    else:
        for line in render_usage(usage, get_terminal_size().columns):
            output.show(line if line.startswith(" ") else style(line, bold=True))
    if not usage["conversations"]:
        output.say("llm-kb: the log has no request with knowledge of this workspace")
