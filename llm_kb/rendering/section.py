"""Renders the `<knowledge>` element of a prompt: pre-loaded subjects and the menu."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from llm_kb.rendering import plain_text
from llm_kb.rendering.plain_text import count, estimate_tokens, join_fitting, shorten
from llm_kb.rendering.presentation import Presented, wrap_subject
from llm_kb.subjects.topics import TopicConfig
from llm_kb.texts.safe import attribute, defuse, one_line

LONGEST_DESCRIPTION = 1_024
"""Maximum number of characters of a skill's description, by which models choose it."""

SHORTEST = 40
"""Shortest summary after cutting; shorter ones are left out."""

_LONGEST_NOTE = 160
"""Room for the note on the cuts, which is shorter."""

HEADER = "The following knowledge topics are available to learn:\n\n"

HOW = "Use the `learn` tool to consume this knowledge."

HIDDEN_NOTE = """\


(note: some topics may contain hidden subjects that are not listed via `learn`
by default, but can be loaded manually if you are made aware of their names via
other means, such as by reading non-hidden subjects first. This prevents
exposing too much irrelevant knowledge upfront)"""

SEARCH_LINE = """\
Use the `search_knowledge` tool to find the passages of these topics that answer a question, by
their words and what these mean.
"""

_IN_SHELL = """\


Run `{0} search "…"` to find the passages of these topics that answer a question, by
their words and what these mean.
Run `{0} show --as-model TOPIC/SUBJECT` to read this knowledge, or a part of it
(`TOPIC/SUBJECT#PART`), and `{0} list TOPIC` to list the subjects of a topic."""


class MenuSubject(NamedTuple):
    """A subject in the menu: its name in listings, its summary, and its size if it is large."""

    name: str
    summary: str = ""
    size: str = ""


class MenuTopic(NamedTuple):
    """A topic in the menu, with the subjects listed below it, or only their number."""

    topic: TopicConfig
    subjects: Sequence[MenuSubject] = ()
    counted: int = 0
    shell: str = ""
    """The command that lists them, for models that run commands; empty for the tool `learn`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The lines of the topics, and notes on the cuts made to fit a budget; made by `fit_menu`."""

    lines: str = ""
    cuts: tuple[str, ...] = ()
    has_hidden: bool = True
    """Whether there may be hidden subjects, which a note explains."""
    shell: str = ""
    """Our command, for models that run commands in place of calling tools."""

    @property
    def tokens(self) -> int:
        """The estimated tokens of the menu, headings and notes included."""
        return plain_text.estimate_tokens(render_menu(self)) if self.lines else 0


def render_menu(menu: Menu, *, search: bool = False) -> str:
    """Return the menu between its heading and its notes; it has at least one topic.

    `search` says whether the search is offered.
    """
    note = f"(note: {'; '.join(menu.cuts)})\n\n" if menu.cuts else ""
    hidden = HIDDEN_NOTE if menu.has_hidden else ""
    if menu.shell:
        footer = (hidden + _IN_SHELL.format(menu.shell)).lstrip("\n")
        return f"{HEADER}{menu.lines}\n{note}{footer}"
    found_by = f"{SEARCH_LINE}\n" if search else ""
    footer = HOW + hidden
    return f"{HEADER}{menu.lines}\n{note}{found_by}{footer}"


def fit_menu(
    topics: Sequence[MenuTopic],
    budget: int,
    describe: Callable[[MenuTopic], MenuTopic] = lambda topic: topic,
    *,
    has_hidden: bool = True,
    shell: str = "",
) -> Menu:
    """Return the menu, cut to a budget of tokens if necessary.

    In steps: summaries are shortened evenly or left out; topics have their subjects counted,
    those of kinds that yield and the largest first; introductions are left out; only ids are
    listed. `describe` adds the summaries to the subjects of a topic; it is called only for those
    that are listed.
    """
    frame = Menu(has_hidden=has_hidden, shell=shell)
    topics = [each._replace(shell=shell) for each in topics]
    room = plain_text.CHARACTERS * budget - len(render_menu(frame))
    listed = _count_largest(topics, room)
    shown = [_make_plain(describe(each)) if each.subjects else each for each in listed]
    lines = _render(shown)
    if listed == topics and len(lines) <= room:
        return replace(frame, lines=lines)
    room -= _LONGEST_NOTE
    shown, cuts = _count_largest(shown, room), []
    limit = _find_limit(shown, room)
    if _render(shown, limit) != _render(shown):
        how = f"shortened to at most {limit} characters" if limit else "left out"
        cuts.append(f"summaries are {how}")
    if counted := sum(bool(each.counted) for each in shown):
        cuts.append(f"the subjects of {count(counted, 'topic')} are counted, not listed")
    if _measure(shown, limit) > room and any(each.topic.introduction for each in shown):
        shown = [t._replace(topic=replace(t.topic, introduction=None)) for t in shown]
        cuts.append("introductions are left out")
    lines = _render(shown, limit)
    if len(lines) > room and len(shown) > 1:
        names = plain_text.join_fitting([each.topic.id for each in shown], room - len("- \n"))
        lines = f"- {names}\n"
        cuts.append("only the ids of topics are listed")
    return replace(frame, lines=lines, cuts=tuple(cuts))


def list_topics(topics: Sequence[TopicConfig], budget: int) -> str:
    """Return ids with titles on a line, without titles or cut if that exceeds the budget."""
    names = [
        f"{topic.id} ({defuse(one_line(topic.title))})" if topic.title else topic.id
        for topic in topics
    ]
    room = plain_text.CHARACTERS * budget
    fits = len(", ".join(names)) <= room
    return plain_text.join_fitting(names if fits else [topic.id for topic in topics], room)


def _make_plain(topic: MenuTopic) -> MenuTopic:
    """Return a topic with each text of its subjects on one line and without closing tags."""
    return topic._replace(
        subjects=[
            MenuSubject(
                defuse(name if name.isprintable() else one_line(name)),
                defuse(one_line(summary)),
                size,
            )
            for name, summary, size in topic.subjects
        ]
    )


def _render(topics: Sequence[MenuTopic], limit: int = LONGEST_DESCRIPTION) -> str:
    """Return the lines of topics, with at most `limit` characters of each summary."""
    lines: list[str] = []
    for topic, subjects, counted, shell in topics:
        title = shorten(one_line(topic.title or ""), LONGEST_DESCRIPTION)
        title = f" (**{title}**)" if title else ""
        introduction = f": {one_line(topic.introduction)}" if topic.introduction else ""
        lines.append(defuse(f"- {topic.id}{title}{introduction}"))
        lines += [f"  - {render_subject(each, limit)}" for each in subjects]
        if counted:
            how = f"run `{shell} list {topic.id}`" if shell else f'call learn("{topic.id}")'
            lines.append(f"  - {count(counted, 'subject')}, {how}")
    return "".join(f"{line}\n" for line in lines)


def render_subject(subject: MenuSubject, limit: int = LONGEST_DESCRIPTION) -> str:
    """Return a subject in a list, with at most `limit` characters of its summary."""
    name = f"{subject.name} {subject.size}" if subject.size else subject.name
    return f"{name} — {shorten(subject.summary, limit)}" if subject.summary and limit else name


def _measure(topics: Sequence[MenuTopic], limit: int) -> int:
    return len(_render(topics, limit))


def _count_largest(topics: Sequence[MenuTopic], room: int) -> list[MenuTopic]:
    """Return the topics with the subjects of some counted, so that all fit without summaries.

    Those of a kind that yields come first, then the largest.
    """
    shown = list(topics)
    sizes = [_measure([topic], 0) for topic in topics]
    places = [place for place, topic in enumerate(topics) if topic.subjects]
    places.sort(key=lambda place: (topics[place].topic.kind.yields, sizes[place]))
    used = sum(sizes)
    while used > room and places:
        place = places.pop()
        counted = topics[place]._replace(subjects=(), counted=len(topics[place].subjects))
        size = _measure([counted], 0)
        if size < sizes[place]:
            shown[place] = counted
            used -= sizes[place] - size
    return shown


def _find_limit(topics: Sequence[MenuTopic], room: int) -> int:
    """Return the most characters of each summary with which all fit; 0 if that is too few."""
    limits = range(SHORTEST, LONGEST_DESCRIPTION + 1)
    fitting = bisect_right(limits, room, key=partial(_measure, topics))
    return limits[fitting - 1] if fitting else 0


GUIDES = "These rules apply here; where they differ, the last ones count:\n\n"

PRELOADED = "The following knowledge has been pre-loaded into your system prompt:\n\n"

TOO_LONG = "Pre-loaded, but too long for here; `learn` these first: "

SEARCH_THIS = "Search this knowledge before you answer or change something: "

LONGEST_ABOUT = (120, 90, 60, 40, 0)
"""Numbers of characters to which introductions are shortened, until all fit."""

NAMES_ROOM = 300
"""Room for the note on subjects that did not fit."""

Preloaded: TypeAlias = Sequence[tuple[TopicConfig, Sequence[Presented]]]
"""Topics with their subjects in the section, in their order."""


def render_section(
    preloaded: Preloaded,
    menu: Menu | None = None,
    guides: Sequence[Presented] = (),
    *,
    search: bool = False,
) -> str | None:
    """Return the element without a final line feed; None if it would be empty.

    `search` says whether the menu names the search. A pre-loaded topic without subjects is
    left out.
    """
    texts = [GUIDES + "\n\n".join(map(wrap_subject, guides))] if guides else []
    texts += [_render_preloaded(preloaded)] if any(subjects for _, subjects in preloaded) else []
    texts += [render_menu(menu, search=search)] if menu and menu.lines else []
    return "<knowledge>\n" + "\n\n".join(texts) + "\n</knowledge>" if texts else None


def render_instructions(preloaded: Preloaded, menu: Menu, room: int, *, search: bool) -> str | None:
    """Return the element for clients that may show only its first `room` characters.

    The menu, which names the tool of the search if it is offered, comes first. If the pre-loaded
    subjects do not fit, they are named.
    """
    texts = [render_menu(menu, search=search)] if menu.lines else []
    names = [f"{topic.id}/{subject.name}" for topic, subjects in preloaded for subject in subjects]
    if names:
        whole = _render_preloaded(preloaded)
        fits = len(whole) + sum(map(len, texts)) + len("<knowledge>\n\n\n\n</knowledge>") <= room
        named = join_fitting(list(map(defuse, names)), NAMES_ROOM - len(TOO_LONG))
        texts.append(whole if fits else f"{TOO_LONG}{named}")
    return "<knowledge>\n" + "\n\n".join(texts) + "\n</knowledge>" if texts else None


def describe_topics(topics: Sequence[TopicConfig], room: int) -> str:
    """Return a sentence on what topics are about, on one line of at most `room` characters.

    A client that loads tools later shows a model nothing else of ours.
    """
    names = [one_line(topic.label) for topic in topics]
    about = [one_line(topic.introduction or "").rstrip(". ") for topic in topics]
    room -= len(SEARCH_THIS) + len(".")

    def join(longest: int) -> str:
        texts = [shorten(text, longest) if longest else "" for text in about]
        pairs = zip(names, texts, strict=True)
        return "; ".join(f"{name} ({text})" if text else name for name, text in pairs)

    longest = next((most for most in (room, *LONGEST_ABOUT) if len(join(most)) <= room), None)
    if longest is None:
        shown = shorten(join_fitting([shorten(name, room // 2) for name in names], room), room)
    else:
        shown = join(longest)
    return f"{SEARCH_THIS}{defuse(shown)}."


def _render_preloaded(preloaded: Preloaded) -> str:
    texts = [_render_topic(topic, subjects) for topic, subjects in preloaded if subjects]
    return PRELOADED + "\n\n".join(texts)


def _render_topic(topic: TopicConfig, subjects: Sequence[Presented]) -> str:
    """Return one pre-loaded topic, from its opening to its closing tag."""
    description = (topic.description or "").strip()
    texts = [f"\n{defuse(description)}\n"] if description else []
    texts += [f"\n{wrap_subject(subject)}\n" for subject in subjects]
    return f'<topic "{attribute(topic.label)}">\n{"".join(texts)}</topic>'


MUCH = 20_000
"""Tokens of sent subjects above which a line tells the user their cost."""


def describe_large(preloaded: Preloaded) -> str | None:
    """Return a note on the cost of large subjects, and how to send less."""
    tokens = {
        f"{topic.id}/{subject.name}": estimate_tokens(subject.text)
        for topic, subjects in preloaded
        for subject in subjects
    }
    total = sum(tokens.values())
    if total <= MUCH:
        return None
    name = max(tokens, key=lambda name: tokens[name])
    return (
        f"~{total:,} tokens of knowledge are sent, ~{tokens[name]:,} of them from {name};"
        f" {name.partition('#')[0]}#ANCHOR sends a part of it"
    )
