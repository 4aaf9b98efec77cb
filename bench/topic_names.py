"""How often words that name a topic find it, and how often they find another.

    python bench/topic_names.py

Topics are the distributions installed beside Python, by name, summary and keywords. Each is
asked for in several words, among all topics and then among all but itself. `find_named` is
compared with what it could have been: the topic of the best score, if that is high enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import distributions

from llm_kb.references.topic.topic_file import TopicFile, make_topic_id
from llm_kb.references.topic.topic_search import find_named, search_topics

Choose = Callable[[Sequence[TopicFile], str], Sequence[TopicFile]]

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
    rules: dict[str, Choose] = {"find_named": find_named}
    rules |= {f"score >= {least}": _by_score(least) for least in (0.0, 0.5, 0.9)}
    print(f"{len(topics)} topics\n")
    print("| asked for by | rule | it | another | several | another, without it |")
    print("|---|---|---|---|---|---|")
    for label, ask in ASKED.items():
        for rule, choose in rules.items():
            print(f"| {label} | {rule} | {_measure(topics, ask, choose)} |")


def _describe(of: object) -> tuple[str, TopicFile]:
    name, summary, keywords = (str(of[key] or "") for key in ("Name", "Summary", "Keywords"))  # type: ignore[index]
    tags = tuple(filter(None, re.split(r"[\s,]+", keywords)))[:5]
    title = f"{name} - {summary[:60]}"
    return name, TopicFile(id=make_topic_id(name), title=title, body=summary, tags=tags)


def _by_score(least: float) -> Choose:
    def choose(topics: Sequence[TopicFile], words: str) -> Sequence[TopicFile]:
        return [hit.topic for hit in search_topics(topics, words)[:1] if hit.score >= least]

    return choose


def _measure(
    topics: dict[str, TopicFile], ask: Callable[[str, TopicFile], str], choose: Choose
) -> str:
    own = other = several = without = 0
    asked = {name: words for name, topic in topics.items() if (words := ask(name, topic))}
    for name, words in asked.items():
        found = choose(list(topics.values()), words)
        own += list(found) == [topics[name]]
        other += len(found) == 1 and found[0] is not topics[name]
        several += len(found) > 1
        rest = [topic for key, topic in topics.items() if key != name]
        without += len(choose(rest, words)) == 1
    counts = (own, other, several, without)
    return " | ".join(f"{count / len(asked):.0%}" for count in counts)


if __name__ == "__main__":
    main()
