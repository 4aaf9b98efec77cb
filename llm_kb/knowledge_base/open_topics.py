"""The topics of one request: selects, renders menu and section, answers `learn`, searches."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from llm_kb.errors import NoMatchError, NoPartError, UnknownTopicError
from llm_kb.knowledge_base import learning
from llm_kb.knowledge_base.tool_text import LEARN
from llm_kb.knowledge_base.topics import EmptyTopicError, OpenTopic, find_id, suggest
from llm_kb.references.catalog import ReferenceCatalog
from llm_kb.references.find_topics import ObsoleteTopicError
from llm_kb.rendering.menu import Menu, list_topics
from llm_kb.rendering.parts import take_pieces
from llm_kb.rendering.presentation import Presented
from llm_kb.rendering.section import Preloaded, render_section
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.selection import Selection, find_near, keep_tagged, require_few, select
from llm_kb.subjects.topics import Catalog, Config, Topic

SEARCHED_FROM_SUBJECTS = 60
SEARCHED_FROM_BYTES = 80_000
"""With `search = "auto"`, the search is offered above so many subjects, or 20,000 tokens."""

_PART = re.compile(r"#.*|L\d+(?:-L?\d+)?", re.IGNORECASE)
"""A part without its subject."""

SEVERAL = "One call can load several subjects, those of another topic as topic/subject."


class OpenTopics:
    """The topics of one request, with the subjects pre-loaded and the answers of `learn`.

    `catalogs` are the enabled topics. `knowledge` are the values of `-k`, as (topic id,
    pattern); `given` are the (topic id, pattern) of this request's fragments. `only`, if it is
    not empty, keeps the topics it names and those of `knowledge`.
    `references` tells whether the tools of References are offered, which puts the fetched
    topics into the menu. Raises UnknownTopicError or NoMatchError if one of these names
    nothing.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the command line
        self,
        config: Config,
        catalogs: Mapping[str, tuple[Topic, Catalog]],
        knowledge: Sequence[tuple[str, str]] = (),
        only: Sequence[str] = (),
        *,
        given: Sequence[tuple[str, str]] = (),
        references: bool = False,
    ) -> None:
        self.config = config
        self._catalogs = catalogs
        self._offers_references = references
        self._named: set[str] = set()
        self.topics = {id_: OpenTopic(*pair) for id_, pair in catalogs.items()}
        """Every enabled topic by id, in the order of the menu."""
        self.only = tuple(self.find_topic(name).topic.id for name in only)
        asked = ((self.find_topic(name, pattern).topic.id, pattern) for name, pattern in knowledge)
        self.knowledge = tuple(dict.fromkeys(asked))
        self._given = [(self._find_id(name), pattern) for name, pattern in given]
        self._named = {*self.only, *(topic for topic, _ in self.knowledge)}
        self.topics = {id_: self._open(id_) for id_ in catalogs if not only or id_ in self._named}
        for topic, pattern in self.knowledge:
            self.require(topic, pattern)

    @property
    def active(self) -> list[OpenTopic]:
        """The topics of this request in the menu's order, with only the requested references."""
        return [opened for id_, opened in self.topics.items() if self._is_asked_for(id_)]

    @property
    def offered(self) -> list[OpenTopic]:
        """The topics that a menu or an error may name."""
        return [opened for opened in self.active if opened.topic.in_menu]

    @property
    def left(self) -> list[OpenTopic]:
        """The topics of the menu, which have subjects left to learn."""
        return [opened for opened in self.active if opened.left]

    @property
    def menu_ids(self) -> list[str]:
        """The ids of the topics that a menu or an error may name."""
        return [opened.topic.id for opened in self.offered]

    def _is_asked_for(self, id_: str) -> bool:
        """Tell whether a topic is the workspace's own, or a requested reference topic.

        Outside a workspace, all reference topics count as requested.
        """
        topic, catalog = self._catalogs[id_]
        if not isinstance(catalog, ReferenceCatalog) or id_ in self._named or topic.learned:
            return True
        menu = self.config.references.menu
        if isinstance(menu, bool):
            return menu
        is_alone = not menu and self.config.workspace is None
        return id_ in menu or self._offers_references or is_alone

    def _open(self, id_: str) -> OpenTopic:
        topic, catalog = self._catalogs[id_]
        asked = [pattern for name, pattern in self.knowledge if name == id_]
        learned = tuple(dict.fromkeys((*topic.learned, *asked)))
        return OpenTopic(replace(topic, learned=learned), catalog)

    def find_topic(self, name: str, pattern: str = "**") -> OpenTopic:
        """Return the topic of this id, else of this id or title ignoring case and outer spaces.

        `pattern` is what follows it in a value of `-k`, for the error. Raises UnknownTopicError.
        """
        if id_ := self._find_id(name):
            return self.topics[id_]
        typed = name.strip() if pattern == "**" else f"{name}/{pattern}"
        raise UnknownTopicError(
            name,
            self.menu_ids,
            near=suggest(typed.partition("/")[0], typed, self.topics.values()),
            # A template may be used far from the workspace whose topics it names.
            has_workspace=self.config.workspace is not None,
        )

    def _find_id(self, name: str) -> str | None:
        """Return the id of the topic that a name stands for."""
        return find_id(name, [opened.topic for opened in self.topics.values()])

    def repeat_preloaded(self) -> None:
        """Let `learn` return pre-loaded subjects too, since a model may not have them."""
        for opened in self.topics.values():
            opened.is_repeated = True

    def renew(self) -> None:
        """List the topics anew for another prompt."""
        self.topics = {id_: self._open(id_) for id_ in self.topics}

    def has_left(self) -> bool:
        """Tell whether any topic has a subject left to learn."""
        return bool(self.left)

    def offers_search(self) -> bool:
        """Tell whether `search_knowledge` is offered, as configured or for much to learn."""
        if isinstance(self.config.search, bool):
            return self.config.search and self.has_left()
        left = [(opened, subject) for opened in self.left for subject in opened.left]
        if len(left) > SEARCHED_FROM_SUBJECTS:
            return True
        return sum(learning.find_size(*each) or 0 for each in left) > SEARCHED_FROM_BYTES

    def choose_topics(self, names: Sequence[str] = (), tags: Sequence[str] = ()) -> list[OpenTopic]:
        """Return the topics that are searched: the named ones, or all in the menu.

        Only those with a wanted tag, if any is wanted. Raises KbError, and ObsoleteTopicError.
        """
        found = {opened.topic.id: opened for opened in map(self.find_topic, names)}
        for opened in found.values():
            if isinstance(opened.catalog, ReferenceCatalog) and not opened.topic.in_menu:
                raise ObsoleteTopicError(opened.topic.id)
        chosen = list(found.values()) or self.offered
        tagged = keep_tagged([opened.topic.tags for opened in chosen], tags)
        return [chosen[number] for number in tagged]

    def has_preloaded(self) -> bool:
        """Tell whether any subject is pre-loaded, by this section or before."""
        return any(opened.learned.subjects for opened in self.active)

    def iter_sent(self, *, preloaded: bool) -> Iterator[tuple[str, str, str]]:
        """Yield topic id, root of the topic and name of each subject that this request sends.

        These are those of fragments, and if `preloaded` this section's.
        """
        for opened in self.active:
            place = opened.topic.id, str(opened.topic.root)
            given = [pattern for id_, pattern in self._given if id_ == opened.topic.id]
            names = select(opened.catalog, given).names
            names += opened.learned.names if preloaded else []
            yield from ((*place, name) for name in dict.fromkeys(names))

    def section(self, *, learn: bool = True, search: bool = False, shell: str = "") -> str | None:
        """Return the `<knowledge>` section; None if it would be empty.

        `learn` and `search` tell whether these tools are offered in this request: without
        `learn` the section has only pre-loaded subjects. `shell` is our command, which a model
        without these tools runs.
        """
        return render_section(self.preloaded, self.menu(shell) if learn else None, search=search)

    def explain_nothing(self, *, learn: bool = True) -> str:
        """Return the reason why nothing can be learned, or is pre-loaded, and what to do."""
        offered = self.offered
        if self.config.workspace is None and not offered:
            return (
                "there is no knowledge base here: neither this directory nor one above it has"
                " an llm-kb.toml or .llm/kb.toml. Run 'llm kb init' to write one."
            )
        if not offered:
            return "no topics are configured; `llm kb add` makes one"
        if not learn:
            return "nothing is pre-loaded; -k or `learned` does that"
        empty = [each for each in offered if not each.listing.listed]
        if self.has_preloaded() or not empty:
            return "nothing is left to learn"
        return "there is nothing to learn: " + "; ".join(
            str(EmptyTopicError(opened.topic, opened.listing)) for opened in empty
        )

    def menu(self, shell: str = "") -> Menu:
        """Return the menu within its budget, and a note on the cuts."""
        return learning.make_menu(self.left, self.config, shell)

    @cached_property
    def preloaded(self) -> Preloaded:
        """The topics with subjects that this section pre-loads, each with their text."""
        return [
            (opened.topic, self.present(opened, opened.learned))
            for opened in self.active
            if opened.learned.subjects
        ]

    def learn(self, topic: str, subjects: str | Sequence[str] | None = None) -> str:
        """Answer one call of the `learn` tool: a listing, or the subjects' text.

        Either argument may be a `topic/pattern`, so that one call can load
        subjects of several topics. Raises UnknownTopicError, PatternError,
        KbError for too many patterns, or NoMatchError when no pattern matches anything.
        """
        config = self.config
        groups = self.group_patterns(
            topic, [subjects] if isinstance(subjects, str) else subjects or ()
        )
        named = self._find_id(topic) or self._find_id(topic.partition("/")[0])
        if len(groups) > 1 or named not in groups:
            # Under headings, so that text of another topic is not taken for this one's.
            several = [(self.topics[id_], each) for id_, each in groups.items()]
            return learning.load_groups(several, config)
        ((id_, patterns),) = groups.items()
        opened = self.topics[id_]
        if learning.ask_to_list(patterns):
            return learning.list_subjects(opened, config, patterns)
        return learning.load(opened, patterns, config)

    def _knows(self, name: str) -> bool:
        wanted = name.strip().casefold()
        return any(id_.casefold() == wanted for id_ in self.topics)

    def _has_topic(self, pattern: str) -> bool:
        name, _, rest = pattern.partition("/")
        return bool(rest) and self._knows(name)

    def group_patterns(self, topic: str, given: Sequence[str]) -> dict[str, list[str]]:
        """Return the patterns of a call of `learn` by topic id; no patterns mean a listing.

        A pattern that matches nothing here may begin with the name of another topic; if all do, an
        unknown topic does not matter. The topic may be written with a subject, of which patterns
        may be parts. Raises UnknownTopicError, PatternError, and KbError for too many patterns.
        """
        patterns = list(dict.fromkeys(given))
        name, _, subject = topic.partition("/")
        require_few([subject, *patterns] if subject else patterns)
        if subject and self._knows(name):
            parts = list(filter(_PART.fullmatch, patterns))
            missing: Sequence[str] = ()
            if parts and parse_pattern(subject).literal is not None:
                missing = select(self.find_topic(name).catalog, parts).missing
            patterns = _add_subject(name, subject, patterns, missing)
            topic = name
        try:
            opened = self.find_topic(topic)
        except UnknownTopicError:
            if not patterns or not all(map(self._has_topic, patterns)):
                raise
            return self._add_elsewhere({}, patterns)
        if not patterns:
            return {opened.topic.id: []}
        named = [each for each in patterns if self._has_topic(each)]
        elsewhere = select(opened.catalog, named).missing
        groups: dict[str, list[str]] = {}
        for pattern in patterns:
            if pattern in elsewhere:
                self._add_elsewhere(groups, [pattern])
            else:
                groups.setdefault(opened.topic.id, []).append(pattern)
        return groups

    def _add_elsewhere(
        self, groups: dict[str, list[str]], patterns: Iterable[str]
    ) -> dict[str, list[str]]:
        """Add patterns to the groups of the topics that they begin with."""
        for pattern in patterns:
            name, _, rest = pattern.partition("/")
            groups.setdefault(self.find_topic(name).topic.id, []).append(rest)
        return groups

    def describe_learn(self) -> str:
        """Return the description of the `learn` tool, which depends only on the configuration."""
        names = list_topics([opened.topic for opened in self.left], self.config.menu_budget)
        sentence = LEARN.description
        return f"{sentence} Available topics: {names}. {SEVERAL}" if names else sentence

    def present(self, opened: OpenTopic, selection: Selection) -> tuple[Presented, ...]:
        """Read subjects whole, and parts of others.

        Anchors that a subject does not have are ignored.
        """
        pieces: list[Presented] = []
        for subject in selection.subjects:
            pieces += learning.read_asked(opened, selection, subject, most=learning.MOST_READ)[0]
        return tuple(pieces)

    def require(self, topic: str, pattern: str) -> Selection:
        """Return the selection of a pattern of `learned` or `-k`.

        Raises UnknownTopicError, and NoMatchError, also for a missing part.
        """
        opened = self.find_topic(topic, pattern)
        selection = select(opened.catalog, [pattern])
        if selection.missing and not opened.listing.listed:
            raise EmptyTopicError(opened.topic, opened.listing, pattern)
        if selection.missing:
            raise NoMatchError(opened.topic.id, pattern, find_near(pattern, opened.catalog))
        lacking = self.find_missing_parts(opened, selection)
        if lacking and len(lacking) == len(selection.subjects):
            error = lacking[0]
            command = shlex.join(["llm", "kb", "learn", error.topic, error.outline])
            error.args = (f"{error.problem}; `{command}` lists them",)  # a person asked
            raise error
        return selection

    def find_missing_parts(self, opened: OpenTopic, selection: Selection) -> list[NoPartError]:
        """Return an error for each missing part of a selection."""
        subjects = [each for each in selection.subjects if each.identity in selection.anchors]
        read = partial(learning.read_asked, opened, selection)
        return [error for subject in subjects for error in read(subject)[1]]

    def read_raw(self, opened: OpenTopic, selection: Selection) -> Iterator[bytes]:
        """Yield the bytes of subjects and parts; of documents and notebooks as Markdown."""
        for subject in selection.subjects:
            yield from take_pieces(
                subject, opened.catalog.read(subject).data, selection.asked_of(subject)
            )


def _add_subject(
    topic: str, subject: str, patterns: Sequence[str], parts: Collection[str]
) -> list[str]:
    """Return patterns with a subject that was written with the topic, or with `parts` of it."""
    name = subject.partition("#")[0]
    joined = [f"{name}#{each.removeprefix('#')}" if each in parts else each for each in patterns]
    own = (f"{name}#", f"{topic}/{name}#")
    is_asked_for = name == subject and any(each.startswith(own) for each in joined)
    return joined if is_asked_for else [subject, *joined]
