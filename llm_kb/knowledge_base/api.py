"""The Python API: a knowledge base discovered from a directory, and its `learn` tool."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb import addons
from llm_kb.config.load import load_config
from llm_kb.config.settings import Config
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import (
    MAX_PATH_SHOWN,
    KbError,
    NoMatchError,
    NoPartError,
    UnknownTopicError,
    quote,
)
from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.hookspecs import Answer
from llm_kb.knowledge_base import learning, tool_text
from llm_kb.knowledge_base.guides import find_guides
from llm_kb.knowledge_base.kinds import (
    SHIPPED,
    EmptyTopicError,
    OpenTopic,
    Topic,
    find_embedder,
    find_id,
    find_topics,
    find_user_dir,
    given_kinds,
    suggest,
)
from llm_kb.knowledge_base.learning import NO_PICTURES, Loaded, PictureRules
from llm_kb.knowledge_base.tool_text import LEARN, SEARCH_KNOWLEDGE, ToolText
from llm_kb.rendering.parts import take_pieces
from llm_kb.rendering.passages import render_passages
from llm_kb.rendering.plain_text import command_line
from llm_kb.rendering.presentation import Picture, Presented, list_pictures
from llm_kb.rendering.section import Menu, Preloaded, list_topics, render_section
from llm_kb.subjects.links import WIKI_LINK, LinkTargets
from llm_kb.subjects.patterns import parse_pattern, split_knowledge
from llm_kb.subjects.topics import (
    CONFIGURED,
    Selection,
    TopicConfig,
    find_near,
    keep_tagged,
    require_few,
    select,
)
from llm_kb.texts.decoding import MOST_BYTES

if TYPE_CHECKING:
    import llm

    from llm_kb.rendering.passages import Passages
    from llm_kb.rendering.presentation import Picture
    from llm_kb.search.index.update import Progress
    from llm_kb.search.roles import Scope


MOST_PASSAGES = 20
"""Maximum number of passages that a model may request; their length is limited as well."""

SEARCHED_FROM_SUBJECTS = 60
SEARCHED_FROM_BYTES = 80_000
"""With `search = "auto"`, the search is offered above so many subjects, or 20,000 tokens."""

_PART = re.compile(r"#.*|L\d+(?:-L?\d+)?", re.IGNORECASE)
"""A part without its subject."""

SEVERAL = "One call can load several subjects, those of another topic as topic/subject."


class KnowledgeBase:
    """The knowledge base of a directory, as `llm -T learn` run there would see it.

    >>> kb = KnowledgeBase.discover("path/to/project", knowledge=["project/maintainers/*"])
    >>> model.chain("Review this", **kb.add_to(system="Be brief."))

    It has the topics of one request. `topics` are the enabled ones by id. `knowledge` are the
    values of `-k`, as (topic id, pattern); `given` are the (topic id, pattern) of this request's
    fragments. `only`, if it is not empty, keeps the topics it names and those of `knowledge`.
    `tools` are the offered tools that come with a kind of topic, which puts its topics into the
    menu. Raises UnknownTopicError or NoMatchError if one of these names nothing.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the command line
        self,
        config: Config,
        topics: Mapping[str, Topic],
        knowledge: Sequence[tuple[str, str]] = (),
        only: Sequence[str] = (),
        *,
        given: Sequence[tuple[str, str]] = (),
        tools: Collection[str] = (),
    ) -> None:
        self.config = config
        self.directory: Path | None = None
        """The directory in which it was discovered; None if the current directory is gone."""
        self.pictures = NO_PICTURES
        """Which pictures may go with an answer; set by what knows the model."""
        self._every = self._found = topics
        self.tools = frozenset(tools)
        """The names of the tools beside `learn` that are offered; menus depend on them."""
        self._named: Collection[str] = ()
        self.only = tuple(self._require_id(name) for name in only)
        asked = ((self._require_id(name, pattern), pattern) for name, pattern in knowledge)
        self.knowledge = tuple(dict.fromkeys(asked))
        self._given = [(self._find_id(name), pattern) for name, pattern in given]
        self._named = {*self.only, *(topic for topic, _ in self.knowledge)}
        if only:
            self._found = {id_: each for id_, each in topics.items() if id_ in self._named}
        self.topics: Mapping[str, OpenTopic] = {}
        """Every enabled topic by id, in the order of the menu."""
        self.renew()
        for topic, pattern in self.knowledge:
            self.require(topic, pattern)

    @classmethod
    def discover(  # noqa: PLR0913 - each is an option of the command line
        cls,
        cwd: str | os.PathLike[str] | None = None,
        *,
        fragments: Sequence[str] = (),
        knowledge: Sequence[str] = (),
        only: Sequence[str] = (),
        excluded: Sequence[str] = (),
        given: Sequence[str] = (),
        tools: Collection[str] = (),
    ) -> KnowledgeBase:
        """Load the configuration in effect in `cwd` and open its topics.

        `fragments` are values of `--kb-cfg`, `knowledge` of `-k`; `given` are the `kb:`
        fragments of the request, and `excluded` what `list_exclusions` returned for an earlier
        turn. `only` keeps these topics and those of `knowledge`. `tools` are other tools that are
        offered: one of an add-on may add its topics to the menu, and the shipped
        topic that describes it. Raises KbError: ConfigError for a broken file,
        UnknownTopicError and NoMatchError for knowledge that does not exist; also if `cwd` is not
        a directory.
        """
        if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112 - it never raises
            found = quote(os.fspath(cwd), MAX_PATH_SHOWN)
            raise KbError(f"{found} is not a directory; name an existing one")
        directory = Path(cwd).absolute() if cwd is not None else find_cwd()
        user_dir = find_user_dir()
        load = partial(
            load_config, directory, user_dir=user_dir, environ=os.environ, given=given_kinds()
        )
        config = load(fragments=tuple(fragments), excluded=tuple(excluded))
        asked = _iter_added(load(), config) if fragments else ()
        kb = cls(
            config,
            find_topics(config, directory, user_dir),
            knowledge=[*asked, *map(split_knowledge, knowledge)],
            only=only,
            given=[split_knowledge(value) for value in given],
            tools=tools,
        )
        kb.directory = directory
        kb.tools |= {each.name for each in addons.find_tools().values() if each.is_offered(kb)}
        return kb

    def value(self, key: str) -> object:
        """Return what a dotted key, such as one of an add-on, is set to; False if it is not."""
        return self.config.settings[key].value if key in self.config.settings else False

    def renew(self) -> None:
        """List the topics and guides anew for another prompt."""
        vars(self).pop("guides", None)
        asked: dict[str, list[str]] = {}
        for id_, pattern in self.knowledge:
            asked.setdefault(id_, []).append(pattern)
        self.topics = {
            id_: OpenTopic(topic, asked.get(id_, ())) for id_, topic in self._found.items()
        }

    @property
    def active(self) -> list[OpenTopic]:
        """The topics that menus have or of which something is pre-loaded, in the menu's order."""
        ids = self.menu_ids
        return [each for id_, each in self.topics.items() if id_ in ids or each.patterns]

    @property
    def offered(self) -> list[OpenTopic]:
        """The topics that a menu or an error may name."""
        return [self.topics[id_] for id_ in self.menu_ids]

    @property
    def left(self) -> list[OpenTopic]:
        """The topics of the menu, which have subjects left to learn."""
        return [opened for opened in self.offered if opened.left]

    @property
    def menu_ids(self) -> list[str]:
        """The ids of the topics that a menu or an error may name."""
        return [
            id_
            for id_, topic in self._found.items()
            if topic.in_menu(
                asked=id_ in self._named or bool(topic.config.learned), tools=self.tools
            )
        ]

    def find_topic(self, name: str, pattern: str = "**") -> OpenTopic:
        """Return the topic of this id, else of this id or title ignoring case and outer spaces.

        `pattern` is what follows it in a value of `-k`, for the error. Raises UnknownTopicError.
        """
        return self.topics[self._require_id(name, pattern)]

    def _require_id(self, name: str, pattern: str = "**") -> str:
        """Return the id of the topic that a name stands for. Raises UnknownTopicError."""
        if id_ := self._find_id(name):
            return id_
        typed = name.strip() if pattern == "**" else f"{name}/{pattern}"
        raise UnknownTopicError(
            name,
            self.menu_ids,
            near=suggest(typed.partition("/")[0], typed, self._found.values()),
            # A template may be used far from the workspace whose topics it names.
            has_workspace=self.config.workspace is not None,
        )

    def _find_id(self, name: str) -> str | None:
        """Return the id of the topic that a name stands for."""
        return find_id(name, [topic.config for topic in self._found.values()])

    def repeat_preloaded(self) -> None:
        """Let `learn` return pre-loaded subjects too, since a model may not have them."""
        for opened in self.topics.values():
            opened.is_repeated = True

    def offers_learn(self) -> bool:
        """Tell whether a subject is left to learn, or a hidden one of a topic that was sent."""
        return bool(self.left) or any(
            opened.learned.subjects and any(each.hidden for each in opened.listing.subjects)
            for opened in self.offered
        )

    def offers_search(self) -> bool:
        """Tell whether `search_knowledge` is offered, as configured or for much to learn."""
        if isinstance(self.config.search, bool):
            return self.config.search and bool(self.left)
        left = [(opened, subject) for opened in self.left for subject in opened.left]
        if len(left) > SEARCHED_FROM_SUBJECTS:
            return True
        return sum(each.find_size(subject) or 0 for each, subject in left) > SEARCHED_FROM_BYTES

    def choose_topics(self, names: Sequence[str] = (), tags: Sequence[str] = ()) -> list[OpenTopic]:
        """Return the topics that are searched: the named ones, or all in the menu.

        Only those with a wanted tag, if any is wanted. Raises KbError.
        """
        found = {opened.config.id: opened for opened in map(self.find_topic, names)}
        chosen = list(found.values()) or self.offered
        tagged = keep_tagged([opened.config.tags for opened in chosen], tags)
        return [chosen[number] for number in tagged]

    def has_preloaded(self) -> bool:
        """Tell whether any subject is pre-loaded, by this section or before."""
        return any(opened.learned.subjects for opened in self.active)

    def iter_sent(self, *, preloaded: bool) -> Iterator[tuple[str, str, str]]:
        """Yield topic id, root of the topic and name of each subject that this request sends.

        These are those of fragments, and if `preloaded` this section's.
        """
        for opened in self.topics.values():
            place = opened.config.id, str(opened.config.root)
            given = [pattern for id_, pattern in self._given if id_ == opened.config.id]
            names = select(opened.topic, given).names
            names += opened.learned.names if preloaded else []
            yield from ((*place, name) for name in dict.fromkeys(names))

    def section(
        self,
        *,
        learn: bool = True,
        search: bool = False,
        guides: bool | None = None,
        shell: str = "",
    ) -> str | None:
        """Return the `<knowledge>` section; None if it would be empty.

        `learn` and `search` tell whether these tools are offered in this request: without
        `learn` the section has only pre-loaded subjects, and the guides that apply if `guides`
        is true. `shell` is our command, which a model without these tools runs.
        """
        guiding = self.guides if (learn if guides is None else guides) else ()
        return render_section(
            self.preloaded, self.menu(shell) if learn else None, guiding, search=search
        )

    @cached_property
    def guides(self) -> Sequence[Presented]:
        """The guides that apply in this directory, if they are configured."""
        config = self.config
        if not config.guides or config.workspace is None:
            return ()
        sent = [subject.body for _, subjects in self.preloaded for subject in subjects]
        return find_guides(config.workspace, self.directory or config.workspace, self._locate, sent)

    def _locate(self, path: str) -> str | None:
        """Return the address of a file of the workspace; its path if no topic has it.

        None if a topic has it disabled.
        """
        file, address = Path(f"{self.config.workspace}/{path}"), path
        for opened in self.topics.values():
            root = opened.config.root
            if opened.config.kind is CONFIGURED and file.is_relative_to(root):
                below = file.relative_to(root).as_posix()
                topic = DirectoryTopic(opened.config)
                if any(each.path == below for each in topic.list_disabled()):
                    return None
                found = [each for each in topic.list(below).subjects if each.path == below]
                address = f"{opened.config.id}/{found[0].name}" if found else address
        return address

    def explain_nothing(self, *, learn: bool = True) -> str:
        """Return the reason why nothing can be learned, or is pre-loaded, and what to do."""
        offered = self.offered
        if self.config.workspace is None and not offered:
            return (
                "there is no knowledge base here: neither this directory nor one above it has"
                " an llm-kb.toml. Run 'llm kb init' to write one."
            )
        if not offered:
            return "no topics are configured; `llm kb add` makes one"
        if not learn:
            return "nothing is pre-loaded; -k or `learned` does that"
        return "there is nothing to learn: " + "; ".join(
            str(EmptyTopicError(each.config, each.listing)) for each in offered if not each.left
        )

    def menu(self, shell: str = "") -> Menu:
        """Return the menu within its budget, and a note on the cuts."""
        return learning.make_menu(self.left, self.config, shell)

    @cached_property
    def preloaded(self) -> Preloaded:
        """The topics with subjects that this section pre-loads, each with their text."""
        found: list[tuple[TopicConfig, Sequence[Presented]]] = []
        for opened in self.active:
            if opened.learned.subjects:
                attached = [picture for _, each in found for picture in list_pictures(each)]
                found.append((opened.config, self.present(opened, opened.learned, attached)))
        return found

    def learn(self, topic: str, subjects: str | Sequence[str] | None = None) -> str:
        """Answer one call of the `learn` tool with text alone; see `load`."""
        return self.load(topic, subjects).text

    def load(self, topic: str, subjects: str | Sequence[str] | None = None) -> Loaded:
        """Answer one call of the `learn` tool: a listing, or the subjects with their pictures.

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
            return learning.load_groups(several, config, self.pictures)
        ((id_, patterns),) = groups.items()
        opened = self.topics[id_]
        if learning.ask_to_list(patterns):
            return Loaded(learning.list_subjects(opened, config, patterns))
        return learning.load(opened, patterns, config, pictures=self.pictures)

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
                missing = select(self.find_topic(name).topic, parts).missing
            patterns = _add_subject(name, subject, patterns, missing)
            topic = name
        try:
            opened = self.find_topic(topic)
        except UnknownTopicError:
            if not patterns or not all(map(self._has_topic, patterns)):
                raise
            return self._add_elsewhere({}, patterns)
        if not patterns:
            return {opened.config.id: []}
        patterns = [_follow_link(opened, each) for each in patterns]
        named = [each for each in patterns if self._has_topic(each)]
        elsewhere = select(opened.topic, named).missing
        groups: dict[str, list[str]] = {}
        for pattern in patterns:
            if pattern in elsewhere:
                self._add_elsewhere(groups, [pattern])
            else:
                groups.setdefault(opened.config.id, []).append(pattern)
        return groups

    def _add_elsewhere(
        self, groups: dict[str, list[str]], patterns: Iterable[str]
    ) -> dict[str, list[str]]:
        """Add patterns to the groups of the topics that they begin with."""
        for pattern in patterns:
            name, _, rest = pattern.partition("/")
            groups.setdefault(self.find_topic(name).config.id, []).append(rest)
        return groups

    def describe_learn(self) -> str:
        """Return the description of the `learn` tool, which depends only on the configuration."""
        names = list_topics([opened.config for opened in self.left], self.config.menu_budget)
        sentence = LEARN.description
        return f"{sentence} Available topics: {names}. {SEVERAL}" if names else sentence

    def present(
        self, opened: OpenTopic, selection: Selection, attached: Sequence[Picture] = ()
    ) -> tuple[Presented, ...]:
        """Read subjects whole, and parts of others.

        Anchors that a subject does not have are ignored. `attached` are the pictures
        that go with the same request already.
        """
        pieces: list[Presented] = []
        rules = self.pictures.after(attached)
        for subject in selection.subjects:
            pieces += learning.read_asked(
                opened,
                selection,
                subject,
                most=MOST_BYTES,
                pictures=rules.after(list_pictures(pieces)),
            )[0]
        return tuple(pieces)

    def require(self, topic: str, pattern: str) -> Selection:
        """Return the selection of a pattern of `learned` or `-k`.

        Raises UnknownTopicError, and NoMatchError, also for a missing part.
        """
        opened = self.find_topic(topic, pattern)
        selection = select(opened.topic, [pattern])
        if selection.missing and not opened.listing.listed:
            raise EmptyTopicError(opened.config, opened.listing, pattern)
        if selection.missing:
            raise NoMatchError(opened.config.id, pattern, find_near(pattern, opened.topic))
        lacking = self.find_missing_parts(opened, selection)
        if lacking and len(lacking) == len(selection.subjects):
            error = lacking[0]
            command = command_line("show", f"{error.topic}/{error.outline}")
            # A person asked.
            message = f"{error.problem}; `{command} --as-model` lists them"
            raise NoMatchError(error.topic, pattern, message=message)
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
                subject, opened.topic.read(subject).data, selection.asked_of(subject)
            )

    def find_passages(  # noqa: PLR0913 - each is a choice of the caller
        self,
        question: str,
        topics: Sequence[str] = (),
        limit: int = tool_text.DEFAULT_LIMIT,
        *,
        progress: Progress | None = None,
        whole: bool = False,
        scope: Scope | None = None,
        tags: Sequence[str] = (),
    ) -> Passages:
        """Return the passages that answer a question, found by words and by the embedding model.

        `topics` are ids or titles; without any, all in the menu are searched. Long passages are
        reduced to the lines that answer, unless they should be `whole`. `scope` narrows
        the search to some documents, `tags` to topics that have one of them. Raises KbError.
        """
        from llm_kb.knowledge_base.passages import find_passages  # noqa: PLC0415 - few requests search

        found = find_passages(
            self.choose_topics(topics, tags),
            question,
            limit,
            partial(find_embedder, self.config.embedding_model),
            progress=progress,
            whole=whole,
            scope=scope,
        )
        others = (o.config for o in self.topics.values() if o.config.id not in found.topics)
        return replace(
            found, unsearched=tuple(o.id for o in others if o.is_offered and o.kind != SHIPPED)
        )

    def unrestricted(self) -> KnowledgeBase:
        """Return the topics of this configuration without the restriction of `only`."""
        if not self.only:
            return self
        kb = KnowledgeBase(self.config, self._every)
        kb.directory = self.directory
        kb.pictures = self.pictures
        return kb

    def subjects(self, topic: str) -> list[str]:
        """Return the names of a topic's listed subjects, sorted. Raises UnknownTopicError."""
        return sorted(subject.name for subject in self.find_topic(topic).topic.list().listed)

    def add_to(
        self, system: str | None = None, model: llm.Model | llm.AsyncModel | None = None
    ) -> dict[str, Any]:
        """Return `system` and `tools` for `model.chain` or `model.prompt`, asynchronous or not.

        `system` is put before the section. The tools are those of `llm -T learn`: `learn`,
        with `search_knowledge` if there is much to learn, and none if nothing is left. With
        the model `learn` attaches the pictures that it takes.
        """
        self.renew()
        if model is not None:
            self.pictures = PictureRules(takes=model.attachment_types.__contains__)
        learn = bool(self.left)
        search = learn and self.offers_search()
        texts = [text for text in (system, self.section(learn=learn, search=search)) if text]
        tools = [self.learn_tool()] if learn else []
        tools += [self.search_tool()] if search else []
        return {"system": "\n\n".join(texts) or None, "tools": tools}

    def learn_tool(self) -> llm.Tool:
        """Return the `learn` tool over these topics, for `tools=[…]` of a prompt."""

        def answer(**arguments: Any) -> str | llm.ToolOutput:
            text, pictures = self.answer_call(**arguments)
            if not pictures:
                return text
            return llm.ToolOutput(output=text, attachments=list(map(attach, pictures)))

        import llm  # noqa: PLC0415 - see `_make_tool`

        return _make_tool(LEARN._replace(description=self.describe_learn()), answer)

    def search_tool(self, progress: Progress | None = None) -> llm.Tool:
        """Return the `search_knowledge` tool over these topics.

        `progress` is called while a topic is indexed, with the work done and the total.
        """

        def answer(**arguments: Any) -> str:
            return self.answer_search(arguments, progress)

        topics = f"Available topics: {', '.join(self.menu_ids)}."
        described = f"{SEARCH_KNOWLEDGE.description} {topics}"
        return _make_tool(SEARCH_KNOWLEDGE._replace(description=described), answer)

    def added_tools(self, names: Collection[str]) -> Iterator[llm.Tool | type[llm.Toolbox]]:
        """Yield the tools of add-ons with these names of `-T`."""
        for each in addons.find_tools().values():
            if each.name in names and each.toolbox:
                yield each.toolbox()
            elif each.name in names:
                for text, answer in each.open(self):
                    yield _make_tool(text, partial(_answer, answer))

    def answer_search(self, arguments: Mapping[str, Any], progress: Progress | None = None) -> str:
        """Answer a call of `search_knowledge` with the arguments of a model. Raises KbError."""
        given = tool_text.read_arguments(SEARCH_KNOWLEDGE, arguments)
        topic = given.get("topic")
        found = self.find_passages(
            given["question"],
            [topic] if topic else [],
            min(given.get("limit", tool_text.DEFAULT_LIMIT), MOST_PASSAGES),
            **tool_text.read_filters(SEARCH_KNOWLEDGE, given),
            progress=progress,
        )
        return render_passages(found, given.get("limit", 1))

    def answer_call(self, /, **arguments: object) -> Loaded:
        """Answer a call of `learn` with the arguments that a model wrote. Raises KbError.

        An error's text is for the model, which then corrects its call.
        """
        try:
            given = tool_text.read_arguments(LEARN, arguments)
        except KbError as error:
            raise KbError(f"{error}; valid topics: {', '.join(self.menu_ids)}") from error
        topic, subjects = given["topic"], arguments.get("subjects")
        if isinstance(subjects, str) and "," in subjects:
            with suppress(KbError):  # a comma may also be part of a name
                return self.load(topic, [subjects])
        return self.load(topic, given.get("subjects"))


def _answer(answer: Answer, /, **arguments: object) -> str:
    """Answer a call of an add-on's tool, with text or with JSON."""
    found = answer(arguments, lambda *_: None)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def attach(picture: Picture) -> llm.Attachment:
    """Return a picture as a model of the host takes it."""
    import llm  # noqa: PLC0415 - see `_make_tool`

    return llm.Attachment(type=picture.media_type, content=picture.data)


def _make_tool(text: ToolText, answer: Callable[..., Any]) -> llm.Tool:
    import llm  # noqa: PLC0415 - half of a second: what needs no model does without

    return llm.Tool(**text.bind(answer))


def _iter_added(before: Config, config: Config) -> Iterator[tuple[str, str]]:
    """Yield the patterns that config fragments and assignments pre-load, as values of `-k`."""
    known = {
        (topic.id, each) for topic in before.topics + before.adjustments for each in topic.learned
    }
    for topic in config.topics + config.adjustments:
        yield from ((topic.id, each) for each in topic.learned if (topic.id, each) not in known)


def _follow_link(opened: OpenTopic, pattern: str) -> str:
    """Return the reference that a link `[[name#part|shown]]` is; others, and subjects, as given."""
    link = WIKI_LINK.fullmatch(pattern) if pattern.startswith("[[") else None
    if link is None or opened.topic.list(pattern).subjects:
        return pattern
    found = LinkTargets(opened.topic.list().subjects).find(link["name"])
    return (found[0] if len(found) == 1 else link["name"]) + (link["part"] or "")


def _add_subject(
    topic: str, subject: str, patterns: Sequence[str], parts: Collection[str]
) -> list[str]:
    """Return patterns with a subject that was written with the topic, or with `parts` of it."""
    name = subject.partition("#")[0]
    joined = [f"{name}#{each.removeprefix('#')}" if each in parts else each for each in patterns]
    own = (f"{name}#", f"{topic}/{name}#")
    is_asked_for = name == subject and any(each.startswith(own) for each in joined)
    return joined if is_asked_for else [subject, *joined]
