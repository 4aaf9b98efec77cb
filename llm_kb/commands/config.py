"""`llm kb config`, `trust`, `add` and others: the configuration, its trust, its topics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from glob import escape
from pathlib import Path

import click

from llm_kb.config.changes import define_topic, drop_topic, edit_patterns
from llm_kb.config.layers import TOPIC, LayerSource, by_topic, list_defaults, topic_key
from llm_kb.config.load import read_layer, read_layers, user_source
from llm_kb.config.settings import Layer, Origin, Setting
from llm_kb.config.trust import is_trusted, render_request, render_value, set_trust
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import KbError, NoMatchError, show_place
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.knowledge_base.kinds import find_user_dir, load_here
from llm_kb.knowledge_base.subject_list import list_topic
from llm_kb.rendering.plain_text import command_line, count, name_some
from llm_kb.subjects.patterns import parse_pattern, split_knowledge
from llm_kb.subjects.topics import Layout, find_near, select
from llm_kb.terminal import configured
from llm_kb.terminal.options import addresses_argument, complete_topic, kb_cfg_option
from llm_kb.terminal.output import confirm, say, show, show_content, show_json
from llm_kb.texts.formats import MARKDOWN_ENDING
from llm_kb.upkeep.check import find_overlaps
from llm_kb.upkeep.first_topics import find_layout


@click.command()
@click.option("all_", "--all", is_flag=True, help="Include the defaults")
@click.option("--path", is_flag=True, help="Print the path of the file that commands edit instead")
@click.option("json_", "--json", is_flag=True, help="Output as a JSON array")
@kb_cfg_option
def config(all_: bool, path: bool, json_: bool, kb_cfg: tuple[str, ...]) -> None:
    """
    Show what is set, and the layer it came from

    Layers, lowest first: default, user, workspace, config fragment (--kb-cfg),
    command line. Settings that wait for 'llm kb trust' are named on standard error.
    The file that commands edit is that of the workspace; without a workspace it is
    your own.

    \b
        llm kb config
        llm kb config --all
        $EDITOR "$(llm kb config --path)"
    """
    if path:
        file = configured.workspace_file() or user_source(find_user_dir())
        show_content(os.fsencode(file.path))  # as bytes: a name need not be text
        return
    effective = load_here(kb_cfg)
    defaults = (Origin(layer=Layer.DEFAULT),)
    given = list_defaults() if all_ else {}
    settings = {key: Setting(value=v, origins=defaults) for key, v in given.items()}
    settings |= effective.settings
    if json_:
        show_json([_describe(key, setting) for key, setting in settings.items()])
    else:
        show("\n".join(_render(settings)))
    for key in effective.withheld:
        say(f"llm-kb: {key} in {show_place(effective.workspace_file)} waits for 'llm kb trust'")


def _describe(key: str, setting: Setting) -> dict[str, object]:
    origins = [{"layer": each.layer.value, "place": each.place} for each in setting.origins]
    return {"key": key, "value": setting.value, **origins[-1], "origins": origins}


def _render(settings: Mapping[str, Setting]) -> Iterator[str]:
    """Yield the settings as TOML with their layers, then the file of each layer."""
    tables: dict[str, list[str]] = {}
    origins = {user_source(find_user_dir()).origin: None}
    for key, setting in settings.items():
        table, _, name = key.rpartition(".")
        setters = setting.origins if isinstance(setting.value, tuple) else setting.origins[-1:]
        layers = dict.fromkeys(origin.layer.value for origin in setters)
        line = f"{f'{name} = {render_value(setting.value)}':<40}  # {', '.join(layers)}"
        tables.setdefault(table, []).append(line)
        origins |= dict.fromkeys(setting.origins)
    for table, lines in tables.items():
        start, topic, id_ = table.partition(f"{TOPIC}.")
        header = f'{start}{topic}"{id_}"' if "." in id_ else table
        yield from (f"[{header}]", *lines, "")
    for origin in origins:
        if origin.place is not None:
            yield f"# {origin.layer.value}: {show_place(origin.place)}"


@click.command()
@click.option("undo", "--undo", is_flag=True, help="Withdraw the trust in this workspace")
@click.option("yes", "-y", "--yes", is_flag=True, help="Trust without asking")
def trust(undo: bool, yes: bool) -> None:
    """
    Trust the settings that this workspace requests

    Needed for 'auto = true', for tools that a workspace offers ('offer = true'), for showing
    your own topics, and for a checkout that belongs to another user: a
    repository you cloned cannot decide that. Trust ends when the configuration changes. It
    is recorded in kb-trust.json in the user directory of llm.

    \b
        llm kb trust
        llm kb trust --undo
    """
    file, user_dir = _require_workspace(), find_user_dir()
    if undo:
        was_trusted = set_trust(file, None, user_dir)
        say(f"{show_place(file)} {'is no longer' if was_trusted else 'was not'} trusted")
        return
    layers = read_layers(find_cwd(), user_dir=user_dir, environ=os.environ, any_owner=True)
    if not layers.withheld and not layers.foreign:
        say(f"Nothing in {show_place(file)} needs trust")
    elif is_trusted(file, layers.digest, user_dir):
        say(f"{show_place(file)} is trusted already")
    else:
        say(f"{render_request(layers)}\n")
        confirm("Trust it?", yes=yes)
        set_trust(file, layers.digest, user_dir)
        say(f"Trusted {show_place(file)}")


def _require_workspace() -> Path:
    file = configured.workspace_file()
    if file is None:
        configured.require_cwd()
        raise click.ClickException("there is no workspace here; see 'llm kb init'")
    return file.path


@click.command()
@click.argument("topic")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--title", help="Name shown to the model instead of the id")
@click.option("--introduction", help="One sentence for the menu")
@click.option(
    "--include", multiple=True, metavar="PATTERN", help="Take only files that match: '*.md'"
)
@click.option("--ignore", multiple=True, metavar="PATTERN", help="Leave out files that match")
@click.option("--user", is_flag=True, help="A topic of your own, offered in every workspace")
def add(
    *,
    topic: str,
    directory: Path,
    title: str | None,
    introduction: str | None,
    include: tuple[str, ...],
    ignore: tuple[str, ...],
    user: bool,
) -> None:
    """
    Make DIRECTORY a topic called TOPIC

    Adds it to the nearest configuration file ('llm kb config --path'), whose comments and
    order are kept. A topic of a workspace must be inside it; with --user it may be
    anywhere. If directories in it have a SKILL.md, each of these is one subject.
    Topics of that file which have DIRECTORY leave it out from then on.

    \b
        llm kb add project kb/project --title "General Project Knowledge"
        llm kb add skills .claude/skills
        llm kb add book book --include '*.asc' --ignore 'drafts/'
        llm kb add notes ~/notes --user
    """
    file = configured.nearest_file(user=user)
    place = Path(os.path.normpath((find_cwd() or Path("/")) / directory))
    is_there = os.path.isdir(place)  # noqa: PTH112 - it never raises, however long the name
    is_skills = is_there and find_layout(place) is Layout.SKILLS
    fields = {
        "title": title,
        "introduction": introduction,
        "subjects": str(place) if user else Path(os.path.relpath(place, file.base)).as_posix(),
        "include": list(include) or None,
        "ignore": list(ignore) or None,
        "layout": Layout.SKILLS.value if is_skills else None,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    is_valid = configured.edit_file(file, partial(define_topic, id_=topic, fields=given))
    say(f"Added topic {topic} to {show_place(file.path)}")
    if is_valid:
        _leave_out(file, topic)
    if not is_there:
        say(f"{show_place(place)} does not exist yet; 'llm kb new {topic}/SLUG' creates it")
    elif is_valid:
        kb = KnowledgeBase.discover()
        if topic not in kb.topics:
            say("llm-kb: warning: another layer has it off; 'llm kb config' shows which")
            return
        own = [each.id for each in kb.config.topics if each.id in kb.topics]
        listed = list_topic(kb.topics[topic])
        say(f"It has {count(len(listed.visible), 'subject')}, ~{listed.tokens:,} tokens")
        for pair, shared in find_overlaps(kb.topics[id_] for id_ in own):
            if topic in pair:
                say(
                    f"{count(shared, 'subject')} of {pair[0]} and {pair[1]}"
                    f" {'is' if shared == 1 else 'are'} found twice: remove a topic"
                    " ('llm kb remove'), or use `ignore` in the configuration"
                )


def _leave_out(file: LayerSource, id_: str) -> None:
    """Let the topics of a file leave out the directory of another one, which was added to it."""
    topics = {config.id: config for config in load_here().topics}
    added = topics.pop(id_, None)  # another layer may have it off
    for config in (topics[each] for each in by_topic(read_layer(file)) if each in topics):
        if added and config.root in added.root.parents:
            below = added.root.relative_to(config.root).as_posix()
            if not DirectoryTopic(config).excludes(f"{below}/x{MARKDOWN_ENDING}"):
                rules = [f"/{escape(below)}/"]
                change = partial(edit_patterns, id_=config.id, name="ignore", patterns=rules)
                configured.edit_file(file, change)
                say(f"Topic {config.id} leaves it out from now on (ignore: {rules[0]})")


@click.command()
@click.argument("topic", shell_complete=complete_topic)
@click.option("yes", "-y", "--yes", is_flag=True, help="Remove without asking")
def remove(topic: str, yes: bool) -> None:
    """
    Remove TOPIC from the configuration; its files stay

    \b
        llm kb remove project
        llm kb remove project -y
    """
    file = configured.file_of_topic(topic)
    confirm(f"Remove topic {topic} from {show_place(file.path)}?", yes=yes)
    configured.edit_file(file, partial(drop_topic, id_=topic))
    say(f"Removed topic {topic} from {show_place(file.path)}; its files are where they were")


_undo = click.option("--undo", is_flag=True, help="Take the patterns back, as they were written")


@click.command()
@addresses_argument(required=True)
@_undo
def preload(addresses: tuple[str, ...], undo: bool) -> None:
    """
    Pre-load subjects, or parts of them

    They are then part of every section, and no longer in the menu.

    \b
        llm kb preload project/code-quality 'project/maintainers/*'
        llm kb preload project/code-quality --undo
    """
    _edit_lists("learned", addresses, undo=undo)


@click.command()
@addresses_argument(required=True)
@_undo
def disable(addresses: tuple[str, ...], undo: bool) -> None:
    """
    Exclude subjects

    A disabled subject is never listed, loaded, suggested or found.

    \b
        llm kb disable project/drafts 'project/old/**'
        llm kb disable project/drafts --undo
    """
    _edit_lists("disabled", addresses, undo=undo)


_EFFECTS = {
    "learned": "sent with every prompt that uses -T learn or -k",
    "disabled": "kept from every model",
}


def _edit_lists(name: str, addresses: Sequence[str], *, undo: bool) -> None:
    """Add the patterns of addresses to a list of their topics, or remove them. Raises KbError."""
    wanted: dict[str, list[str]] = {}
    for topic, pattern in map(split_knowledge, addresses):
        wanted.setdefault(topic, []).append(pattern)
    for topic in wanted:
        configured.file_of_topic(topic)  # before any of them is changed
    for topic, patterns in wanted.items():
        _edit_list(topic, name, patterns, remove=undo)


def _edit_list(topic: str, name: str, wanted: list[str], *, remove: bool) -> None:
    file, key = configured.file_of_topic(topic), topic_key(topic, name)
    before = read_layer(file).get(key)
    if not remove:
        wanted = _require_matches(topic, name, wanted)
    elif before and isinstance(before.value, tuple):
        wanted = [escape(each) if escape(each) in before.value else each for each in wanted]
    change = partial(edit_patterns, id_=topic, name=name, patterns=wanted, remove=remove)
    configured.edit_file(file, change)
    now = read_layer(file)[key]
    held = now.value if isinstance(now.value, tuple) else ()
    when = "already" if before == now else "now"
    what = f"{', '.join(held) or f'nothing of {topic}'} {'are' if len(held) > 1 else 'is'}"
    say(f"{what} {when} {_EFFECTS[name]} ({show_place(file.path)})")
    if name == "disabled" and not remove:
        _say_elsewhere(topic)


def _say_elsewhere(id_: str) -> None:
    """Name the disabled files of a topic that are subjects of other topics."""
    topics = {topic.id: topic for topic in load_here().topics}
    own = topics.pop(id_)
    files = {own.root / each.path for each in DirectoryTopic(own).list_disabled()}
    for topic in topics.values() if files else ():
        listed = DirectoryTopic(topic).list().subjects
        if slugs := [each.slug for each in listed if topic.root / each.path in files]:
            advice = command_line("disable", *(f"{topic.id}/{slug}" for slug in slugs[:3]))
            say(f"llm-kb: warning: {topic.id} still has {name_some(slugs)}: {advice}")


def _require_matches(id_: str, name: str, patterns: Sequence[str]) -> list[str]:
    """Return patterns as they are written; a name to disable, such as `[id]`, matches only itself.

    Raises NoMatchError for a name that no subject has; a glob may be for future subjects.
    What was fetched or captured may be absent, and only a topic of a directory can have `disabled`.
    """
    topic = next((topic for topic in load_here().topics if topic.id == id_), None)
    if topic is None:
        if name == "disabled":
            raise KbError(
                f"the subjects of topic {id_!r} are not in a directory of yours; 'enable = false'"
                " leaves all of it out"
            )
        return [*patterns]
    catalog = DirectoryTopic(replace(topic, disabled=()))
    written = []
    for pattern in patterns:
        selection = select(catalog, [pattern])
        if name == "disabled" and selection.anchors:
            advice = command_line("disable", f"{id_}/{selection.subjects[0].name}")
            raise KbError(f"a part cannot be disabled alone; its subject can: {advice}")
        is_name = name == "disabled" and selection.exact and parse_pattern(pattern).literal is None
        written.append(escape(pattern) if is_name else pattern)
        if not selection.subjects:
            error = NoMatchError(id_, pattern, find_near(pattern, catalog))
            if parse_pattern(pattern).literal:
                raise error
            say(f"llm-kb: warning: nothing to match yet: {error}")
    return written
