"""A topic whose subjects are texts that no directory of the user's has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from pathlib import Path

from llm_kb.errors import UnreadableError
from llm_kb.files.topic_documents import TopicDocuments, stamp_content
from llm_kb.subjects.topics import Content, Listing, Subject, TopicConfig, slugify
from llm_kb.texts.formats import MARKDOWN_ENDING


class TextTopic:
    """Texts in Markdown by the names of their subjects. Implements `Topic`.

    They are made when they are first asked for.
    """

    def __init__(
        self,
        config: TopicConfig,
        make: Callable[[], Mapping[str, str]],
        index: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self.config = config
        self._make = make
        self._index = index

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return self._make()

    def in_menu(self, *, asked: bool, tools: Collection[str]) -> bool:
        """Tell whether a menu has it: always."""
        return True

    def documents(self) -> TopicDocuments:
        """Return the texts as a search reads them."""
        return TopicDocuments(self, index=self._index())

    def find_file(self, path: str) -> Path | None:
        """Return no file."""

    def find_size(self, subject: Subject) -> int:
        """Return the bytes of a subject. Raises UnreadableError."""
        return self.read(subject, 0).size

    def stamp(self, path: str) -> tuple[int, int, int]:
        """Return a size and times that change with a text."""
        return stamp_content(self.read(make_subject(path.removesuffix(MARKDOWN_ENDING))).data)

    def list_watched(self) -> tuple[Listing, None]:
        """Return the subjects; a change of them is seen by reading them."""
        return self.list(), None

    def list(self, reference: str | None = None) -> Listing:
        """Return the subjects, or those that a reference names."""
        subjects = sorted(map(make_subject, self._texts))
        if reference is not None:
            subjects = [each for each in subjects if reference in {each.slug, each.path}]
        return Listing(subjects=tuple(subjects))

    def find_text(self, name: str) -> str | None:
        """Return the text of a name; None if there is none."""
        return self._texts.get(name)

    def read(self, subject: Subject, limit: int | None = None) -> Content:
        """Return a text. Raises UnreadableError."""
        text = self.find_text(subject.path.removesuffix(MARKDOWN_ENDING))
        if text is None:
            raise UnreadableError(subject.path, "there is no such text")
        data = text.encode("utf-8", "replace")
        return Content(data=data if limit is None else data[:limit], size=len(data))


def make_subject(name: str) -> Subject:
    """Return the subject of a name."""
    path = name + MARKDOWN_ENDING
    return Subject(slug=slugify(path), name=name, path=path)
