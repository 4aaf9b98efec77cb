"""Mentions of subjects in texts."""

from __future__ import annotations

import pytest

from llm_kb.upkeep.mentions import Mentions, Reference, find_references
from tests.presented import make_subject


@pytest.mark.parametrize(
    ("path", "text", "is_mentioned"),
    [
        pytest.param("ast-grep/.rules.md", "read `ast-grep/rules` for all", True, id="slug"),
        pytest.param(".notes.md", "See notes.", True, id="slug at the end of a sentence"),
        pytest.param(".notes.md", "See footnotes and notes-old.", False, id="part of a word"),
        pytest.param("ast-grep/.rules.md", "the rules of ast-grep", False, id="words of a slug"),
        pytest.param("ast-grep/.rules.md", "[rules](./.rules.md)", True, id="file beside it"),
        pytest.param("x/y/refs/api.md", "see refs/api.md", True, id="end of a path"),
        pytest.param("x/y/refs/api.md", "see y/refs/api.md", True, id="longer end of a path"),
        pytest.param("x/y/refs/api.md", "see api", False, id="bare word"),
        pytest.param("x/run", "run it", False, id="bare word that is a whole name"),
        pytest.param("x/fonts/a.txt", "look into `./fonts`", True, id="directory"),
        pytest.param("x/fonts/a.txt", "look into fonts/", True, id="directory with a slash"),
        pytest.param("x/fonts/a.txt", "look into x/fonts", True, id="path of a directory"),
        pytest.param("x/a/b/c.txt", "look into a/", True, id="directory above"),
        pytest.param("x/fonts/a.txt", "choose fonts", False, id="bare word for a directory"),
        pytest.param(".x/a.txt", "look into x/", True, id="hidden directory without its dot"),
        pytest.param(f"{'d/' * 2000}a.txt", "see d/d/a.txt", True, id="deep"),
        pytest.param("pdf/forms.md", "If you fill a form, read FORMS.md", True, id="case"),
        pytest.param("pdf/forms.md", "see [forms](../pdf/forms.md#top)", True, id="link"),
        pytest.param("a/my form.md", "see [a form](my%20form.md)", True, id="encoded link"),
        pytest.param("a/my form.md", "see [a form](<my form.md>)", True, id="link in brackets"),
        pytest.param(".two words.md", "see 'two words'", True, id="white space"),
        pytest.param(".two words.md", "two  words", False, id="other white space"),
    ],
)
def test_mentions(path: str, text: str, is_mentioned: bool) -> None:
    mentions = Mentions([make_subject(path)])
    mentions.look_at("nothing")
    mentions.look_at(text)
    mentions.look_at("more")
    unmentioned = [subject.path for subject in mentions.unmentioned()]
    assert unmentioned == ([] if is_mentioned else [path])


def test_a_hidden_subject_passes_on_what_it_names() -> None:
    one, two, three, four = (
        make_subject(f".{name}.md") for name in ("one", "two", "three", "four")
    )
    mentions = Mentions([one, two, three, four])
    mentions.look_at("See `two`.", by=one)
    mentions.look_at("See `four`.", by=three)
    mentions.look_at("See `three`.", by=four)
    assert mentions.unmentioned() == [one, two, three, four]
    mentions.look_at("See `one`.")
    assert mentions.unmentioned() == [three, four]


@pytest.mark.parametrize(
    ("text", "references"),
    [
        pytest.param('learn("skills")', [("skills", None)], id="topic"),
        pytest.param("learn('skills', 'a/*')", [("skills", "a/*")], id="subject"),
        pytest.param(
            'learn(topic: "skills", subjects: ["a", "b"])',
            [("skills", "a"), ("skills", "b")],
            id="named",
        ),
        pytest.param(
            "learn(\n  topic='other one',\n  subjects=[\n'a'])", [("other one", "a")], id="lines"
        ),
        pytest.param('learn("skills", [])', [("skills", None)], id="no subject"),
        pytest.param('relearn("a") learn(a)', [], id="something else"),
        pytest.param("llm -k 'skills/**' hi", [("skills", "**")], id="option"),
        pytest.param("--knowledge=skills/a.", [("skills", "a")], id="long option"),
        pytest.param("-f kb:skills/a, then", [("skills", "a")], id="fragment"),
        pytest.param("llm kb show skills/a/b", [("skills", "a/b")], id="command"),
        pytest.param("-k yours/a kb:yours/a", [], id="topics of another project"),
        pytest.param("look-k skills/a", [], id="no option"),
    ],
)
def test_references(text: str, references: list[tuple[str, str | None]]) -> None:
    found = [(r.topic, r.pattern) for r in find_references(text, ["skills"])]
    assert found == references


def test_references_know_their_lines() -> None:
    assert list(find_references('\nlearn("a")\n\n-k b/c', ["b"])) == [
        Reference(line=2, topic="a", pattern=None),
        Reference(line=4, topic="b", pattern="c"),
    ]
