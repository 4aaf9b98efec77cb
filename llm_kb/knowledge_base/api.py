"""The Python API: a knowledge base discovered from a directory, and its `learn` tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_kb.config.load import load_config
from llm_kb.config.settings import Config
from llm_kb.config.workspace import find_cwd
from llm_kb.errors import MAX_PATH_SHOWN, KbError, quote
from llm_kb.knowledge_base import open_topics, tool_text
from llm_kb.knowledge_base.kinds import GIVEN, SHIPPED, find_topics
from llm_kb.knowledge_base.learning import Loaded, PictureRules
from llm_kb.knowledge_base.tool_text import LEARN, SEARCH_KNOWLEDGE, ToolText
from llm_kb.knowledge_base.user_dir import find_embedder, find_user_dir
from llm_kb.rendering.passages import render_passages
from llm_kb.subjects.patterns import split_knowledge

if TYPE_CHECKING:
    import llm

    from llm_kb.rendering.passages import Passages
    from llm_kb.rendering.presentation import Picture
    from llm_kb.search.index.update import Progress
    from llm_kb.search.roles import Scope


MOST_PASSAGES = 20
"""Maximum number of passages that a model may request; their length is limited as well."""


class KnowledgeBase(open_topics.OpenTopics):
    """The knowledge base of a directory, as `llm -T learn` run there would see it.

    >>> kb = KnowledgeBase.discover("path/to/project", knowledge=["project/maintainers/*"])
    >>> model.chain("Review this", **kb.add_to(system="Be brief."))
    """

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
        offered: `References` adds the fetched topics to the menu, and it or `emit_knowledge` the
        shipped topic that describes them. Raises KbError: ConfigError for a broken file,
        UnknownTopicError and NoMatchError for knowledge that does not exist; also if `cwd` is not
        a directory.
        """
        if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112 - it never raises
            found = quote(os.fspath(cwd), MAX_PATH_SHOWN)
            raise KbError(f"{found} is not a directory; name an existing one")
        directory = Path(cwd).absolute() if cwd is not None else find_cwd()
        user_dir = find_user_dir()
        load = partial(load_config, directory, user_dir=user_dir, environ=os.environ, given=GIVEN)
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
        return kb

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
            partial(find_embedder, self.config.references.embedding_model),
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
        learn = self.has_left()
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
