"""How often words that name a topic find it, and how often they find another.

    python bench/topic_names.py

Topics are the distributions installed beside Python, by name, summary and keywords. Each is
asked for in several words, among all topics and then among all but itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import distributions

from llm_kb.references.topic.topic_file import TopicFile, make_topic_id
from llm_kb.search.titles import find_named

ASKED: dict[str, Callable[[str, TopicFile], str]] = {
    "its name": lambda name, _: name,
    "its name + docs": lambda name, _: f"{name} docs",
    "its name + library": lambda name, _: f"{name} library",
    "its name + a tag": lambda name, topic: f"{name} {topic.tags[0]}" if topic.tags else "",
    "two of its tags": lambda _, topic: " ".join(topic.tags[:2] if len(topic.tags) > 1 else ()),
    "its title's first words": lambda _, topic: " ".join(topic.body.split()[:3]),
}


def main() -> None:
    topics = dict(map(_describe, (d.metadata for d in distributions() if d.metadata["Summary"])))
    print(f"{len(topics)} topics\n")
    print("| asked for by | it | another | several | it among several | another, without it |")
    print("|---|---|---|---|---|---|")
    for label, ask in ASKED.items():
        print(f"| {label} | {_measure(topics, ask)} |")


def _describe(of: object) -> tuple[str, TopicFile]:
    name, summary, keywords = (str(of[key] or "") for key in ("Name", "Summary", "Keywords"))  # type: ignore[index]
    tags = tuple(filter(None, re.split(r"[\s,]+", keywords)))[:5]
    title = f"{name} - {summary[:60]}"
    return name, TopicFile(id=make_topic_id(name), title=title, body=summary, tags=tags)


def _measure(topics: dict[str, TopicFile], ask: Callable[[str, TopicFile], str]) -> str:
    own = other = several = among = without = 0
    asked = {name: words for name, topic in topics.items() if (words := ask(name, topic))}
    for name, words in asked.items():
        found = find_named(list(topics.values()), words)
        own += list(found) == [topics[name]]
        other += len(found) == 1 and found[0] is not topics[name]
        several += len(found) > 1
        among += len(found) > 1 and topics[name] in found
        rest = [topic for key, topic in topics.items() if key != name]
        without += len(find_named(rest, words)) == 1
    counts = (own, other, several, among, without)
    return " | ".join(f"{count / len(asked):.0%}" for count in counts)


if __name__ == "__main__":
    main()
