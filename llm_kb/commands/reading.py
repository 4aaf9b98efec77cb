"""`llm kb list`, `show`, `prompt`, `used`: what there is, what is sent, what was read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

import click

from llm_kb.host.coding_agents import name_command
from llm_kb.host.log import read_turns
from llm_kb.knowledge_base import subject_list
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import EmptyTopicError
from llm_kb.rendering.plain_text import estimate_tokens
from llm_kb.rendering.section import Menu, render_section
from llm_kb.subjects.patterns import split_knowledge
from llm_kb.terminal import configured, options, output
from llm_kb.terminal.screen import is_terminal, style
from llm_kb.upkeep.usage import count_uses, render_usage


@click.command("list")
@options.addresses_argument(required=False)
@click.option("all_", "--all", is_flag=True, help="Include hidden, disabled and skipped subjects")
@click.option("json_", "--json", is_flag=True, help="Output as a JSON array")
@options.kb_cfg_option
def list_(addresses: tuple[str, ...], all_: bool, json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    List the topics, or the subjects of a topic

    More than 200 subjects are folded by directory; --all lists each of them.
    Tokens are estimated at four bytes each.

    \b
        llm kb list
        llm kb list project --all
        llm kb list 'project/maintainers/*'
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    listed = [] if addresses else list(subject_list.list_topics(kb, everything=all_))
    for topic, _, pattern in (address.partition("/") for address in addresses):
        for id_, patterns in kb.group_patterns(topic, [pattern] if pattern else []).items():
            listed.append(subject_list.list_topic(kb.topics[id_], patterns, everything=all_))
    if json_:
        records = [record for topic in listed for record in topic.subject_dicts()]
        output.show_json(records if addresses else [topic.as_dict() for topic in listed])
        return
    width = get_terminal_size().columns if is_terminal(sys.stdout) else None
    if addresses:
        described = [
            subject_list.add_texts(kb.topics[each.topic.id], each, kb.config) for each in listed
        ]
        rendered = (subject_list.render_subjects(each, width) for each in described)
        lines = [_style(line) for each in rendered for line in each]
    else:
        lines = [_style_topic(line) for line in subject_list.render_topics(listed, width)]
    # One write for all of them: thousands of small ones take longer than the walk.
    output.show("".join(f"{line}\n" for line in lines), nl=False)
    if not any(opened.config.is_offered for opened in kb.topics.values()):
        output.say(f"llm-kb: {kb.explain_nothing()}")


def _style_topic(line: str) -> str:
    """Return the line of a topic with its id bold, and a note below it dim."""
    id_, gap, rest = line.partition("  ")
    return style(id_, bold=True) + gap + rest if id_ else style(line, dim=True)


def _style(line: str) -> str:
    """Return what no model finds by itself dim; the host strips it in pipes."""
    dim = line.endswith(("  hidden", "  disabled")) or line.lstrip().startswith("skipped ")
    return style(line, dim=True) if dim else line


@click.command()
@options.addresses_argument(required=True)
@click.option("--as-model", is_flag=True, help="As a model gets them from its tool learn")
@options.kb_cfg_option
def show(addresses: tuple[str, ...], as_model: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Print subjects, or parts of them, as they are on disk

    Documents and notebooks are printed as the Markdown that is read. With --as-model a
    TOPIC alone lists its subjects, and of a large subject there is the beginning, with
    an outline.

    \b
        llm kb show project/code-quality
        llm kb show 'project/code-quality#naming'
        llm kb show 'project/maintainers/*' | wc
        llm kb show --as-model project
    """
    kb = KnowledgeBase.discover(fragments=kb_cfg)
    if as_model:
        configured.say_withheld(kb.config)
        _show_as_model(kb, addresses)
        return
    # Find all before printing any: partial output is easily mistaken for all of it.
    names = [split_knowledge(address) for address in addresses]
    for opened, selection in [(kb.find_topic(*name), kb.require(*name)) for name in names]:
        for data in kb.read_raw(opened, selection):
            output.show_content(data, nl=False)


def _show_as_model(kb: KnowledgeBase, addresses: Sequence[str]) -> None:
    """Print what one call of `learn` with these addresses answers. Raises KbError."""
    topic, _, pattern = addresses[0].partition("/")
    others = [split_knowledge(each) for each in addresses[1:]]
    patterns = [pattern or "**"] if pattern or others else []
    patterns += [each if id_ == topic else f"{id_}/{each}" for id_, each in others]
    text = kb.learn(topic, patterns or None)
    output.show_content(text, nl=not text.endswith("\n"))
    opened = None if patterns else kb.topics.get(topic)
    if opened is not None and not opened.listing.listed:
        output.say(f"llm-kb: {EmptyTopicError(opened.config, opened.listing)}")


@click.command()
@options.knowledge_options
@click.option("--preloaded", is_flag=True, help="Without the menu, as -k sends it without -T learn")
@click.option("--shell", is_flag=True, help="For a model that runs commands and has no such tools")
@click.option("--tokens", is_flag=True, help="Show what each part costs instead of the section")
def prompt(
    knowledge: tuple[str, ...], kb_cfg: tuple[str, ...], preloaded: bool, shell: bool, tokens: bool
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
    if tokens:
        output.show(render_costs(count_costs(kb, learn=not preloaded, shell=command)))
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


def count_costs(kb: KnowledgeBase, *, learn: bool, shell: str = "") -> dict[str, Any]:
    """Return the estimated tokens of a request.

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
