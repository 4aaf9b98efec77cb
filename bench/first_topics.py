"""How much of a project's prose `llm kb init` takes or names, and puts where a person would.

    python bench/first_topics.py DIRECTORY      the clones of the projects below, by their names

Prose are the files in a markup, in a notebook or in POD that git knows; their size is in
characters. The places were written by hand from each project's tree. `init` was made with the
first group at hand; the second group was first looked at when it was finished, and nothing was
changed for it. The third was looked at later, and the fourth after `init` had been written anew;
what was wrong with them was then corrected. A place
is the id of a topic, `out` for what should be left out and named, and `any` where people would
not agree. The first line that fits counts.
"""

from __future__ import annotations

import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.subjects.topics import Layout, TopicConfig
from llm_kb.upkeep.first_topics import propose_topics

PROSE = (
    *(".md", ".mdx", ".markdown", ".rst", ".adoc", ".org", ".ipynb", ".pod", ".mdc"),
    *(".Rd", ".Rmd", ".cheatmd", ".livemd"),
)

_FORMAL = (
    "CHANGELOG* out|CHANGES* out|History* out|CODE*OF*CONDUCT* out|LICENSE* out|MAINTAINERS* out"
    "|code-of-conduct* out|license.md out|.github/*TEMPLATE* out|.github/*template* out"
)
PLACES = {
    "langfuse": "README.*.md out|.agents/skills/* skills|web/.agents/skills/* skills-2"
    "|.agents/* agents|.github/* github|*__tests__* out|*/* pages|* overview",
    "handson-ml3": "*/* pages|* overview",
    "ru.javascript.info": "*/* pages|* overview",
    "astro-docs": "src/content/docs/en/* docs|src/content/docs/* out|i18n-guides/* i18n-guides"
    "|config/* any|* overview",
    "laravel-docs": "* overview",
    "rfcs": "text/* text|* overview",
    "jekyll": "test/* out|docs/_docs/history.md out|docs/_docs/code_of_conduct.md out"
    "|.github/CODE* out|.github/* github|docs/* docs|lib/* any|rake/* any|* overview",
    "tldr": "pages/* pages|pages.* out|contributing-guides/*.*.md out"
    "|contributing-guides/* contributing-guides|scripts/* any|* overview",
    "terraform-aws-vpc": "examples/* out|docs/* docs|.github/* github|*/* pages|* overview",
    "swift-argument-parser": "Tests/* out|*.docc/* argumentparser-docs|.github/* github"
    "|Sources/* any|Examples/* any|cmake/* any|Tools/* any|* overview",
    "asciidoctor": "test/* out|features/* out|README-* out|docs/* docs|man/* man"
    "|data/* any|benchmark/* any|src/* any|* overview",
    "phoenix": "guides/* guides|usage-rules/* usage-rules|.github/* github|*/* pages|* overview",
    "handbook": "* overview",
    "awesome-cursorrules": "rules/* rules|* overview",
    "helm-charts": "*/CHANGELOG.md out|changelog/* out|charts/* pages|.agents/skills/* skills"
    "|.github/* github|* overview",
    "flask": "docs/changes.rst out|docs/license.rst out|docs/* docs|examples/* out|src/* any"
    "|tests/* out|.github/* github|* overview",
    "mojo": "lib/Mojolicious/Guides/* mojolicious-guides|lib/* any|t/* any|.github/* github"
    "|* overview",
    "org-ql": "tests/* out|examples/* any|* overview",
    "curriculum": "*tests/* out|markdownlint/* any|.github/* any|*/* pages|* overview",
    "system-design-primer": "*README-* out|solutions/* solutions|* overview",
    "architecture-decision-record": "locales/en/*LICENSE* out|locales/en/* locales|locales/*/* out"
    "|locales/* any|* overview",
}
KEPT_ASIDE = {
    "book": "packages/trpl/CHANGELOG.md out|src/* docs|nostarch/* nostarch|*/* any|* overview",
    "httpx": "docs/code_of_conduct.md out|docs/* docs|.github/* github|* overview",
    "guides": "*/* any|* overview",
    "undici": "docs/* docs|.github/* any|types/* any|lib/* any|test/* out|* overview",
    "kind": "site/* docs|.github/* any|*/* any|* overview",
    "documentation": "content/en/* docs|content/* out|* overview",
}
LOOKED_AT_ONCE = {
    "dplyr": "man/* man|vignettes/* vignettes|revdep/* out|tests/* out|.claude/skills/* skills"
    "|.claude/* claude|.github/* github|NEWS.md out|*/* any|* overview",
    "ecto": "guides/* guides|examples/* out|integration_test/* any|* overview",
    "hugoDocs": "content/LICENSE.md out|content/* docs|archetypes/* out|.github/* github|*/* any"
    "|* overview",
    "jq": "NEWS.md out|docs/* docs|tests/* out|*/* any|* overview",
    "obsidian-help": "en/*Layouts/* any|en/* docs|Sandbox/* sandbox|Release notes/* out"
    "|.claude/skills/* skills|.claude/* claude|.github/* any|scripts/* any|AGENTS.md overview"
    "|*/* out|* overview",
    "query": "*CHANGELOG.md out|docs/* docs|examples/* out|.changeset/* out|.github/* any"
    "|*/* pages|* overview",
    "community.docker": "docs/* docs|changelogs/* out|.azure-pipelines/* any|tests/* out|*/* any"
    "|* overview",
    "Pkg.jl": "test/* out|docs/* docs|*/* any|* overview",
    "mdBook": "tests/* out|guide/* guide|examples/* out|test_book/* any|crates/* pages"
    "|*/* any|* overview",
    "awesome": "media/* any|pull_request_template.md out|.github/* any|* overview",
    "libgit2": "deps/* out|docs/changelog.md out|docs/code_of_conduct.md out|docs/* docs"
    "|tests/* out|examples/* out|*/* pages|* overview",
}
AFTER_THE_REWRITE = {
    "human-essentials": "docs/architecture/decisions/* decisions|docs/* docs|spec/* out"
    "|code-of-conduct.md out|* overview",
    "magit": "docs/AUTHORS* out|docs/BACKERS* out|docs/* docs|.github/* github|* overview",
    "hott-book": "* overview",
    "home-manager": "tests/* out|docs/release-notes/* out|docs/*/release-notes.md out|docs/* docs"
    "|*/* any|* overview",
    "kotlinx.coroutines": "docs/* docs|*/* pages|* overview",
    "mojombo.github.io": "_posts/* posts|* overview",
    "PythonDataScienceHandbook": "notebooks/* notebooks|notebooks_v1/* notebooks-v1|website/* any"
    "|*/* any|* overview",
    "swift-evolution": "proposals/* proposals|visions/* visions|releases/* any"
    "|proposal-templates/* any|*/* any|* overview",
    "stack": "ChangeLog* out|doc/* docs|tests/* out|*/* any|* overview",
    "localsend": "support/readme/* out|*/CHANGELOG* out|*/* any|* overview",
    "swift-composable-architecture": "*.docc/* composablearchitecture-docs|Examples/* out|*/* any"
    "|* overview",
    "Polly": "docs/* docs|samples/* out|*/* any|* overview",
    "zls": "*/* any|* overview",
    "ansible-for-devops": "*/* pages|* overview",
    "helm-www": "versioned_docs/* out|i18n/* out|docs/changelog* out|*code-of-conduct* out"
    "|community/MAINTAINERS* out|*-ko.md out|blog/* blog|community/* community|docs/* docs|*/* any"
    "|* overview",
    "docs-zh-cn": "src/examples/* any|src/* docs|.claude/* any|.github/* any|* overview",
    "celery": "Changelog* out|docs/changelog* out|docs/history/changelog* out|docs/* docs"
    "|examples/* out|*/* any|* overview",
}


def measure(directory: Path, places: str) -> str:
    """Return the line of one project."""
    start = time.perf_counter()
    topics, left_out = propose_topics(directory)
    seconds = time.perf_counter() - start
    topic_of: dict[str, set[str]] = {}
    for proposal in topics:
        root = (directory / proposal.subjects).resolve()
        topic = TopicConfig(
            id="x",
            root=root,
            ignore=tuple(proposal.ignore),
            layout=Layout(proposal.layout or "files"),
        )
        for subject in DirectoryTopic(topic).list().subjects:
            path = (root / subject.path).relative_to(directory.resolve()).as_posix()
            topic_of.setdefault(path, set()).add(proposal.id)
    named = {path for paths in left_out.values() for path in paths}
    rules = [rule.rsplit(" ", 1) for rule in f"{_FORMAL}|{places}".split("|")]
    whole = known = right = 0
    for path in _list_prose(directory):
        size = len((directory / path).read_text("utf-8", "replace"))
        place = next(place for glob, place in rules if fnmatchcase(path, glob))
        is_known = path in named or path in topic_of
        is_right = {
            "any": is_known,
            "out": path in named and path not in topic_of,
        }.get(place, place in topic_of.get(path, ()))
        whole, known, right = whole + size, known + size * is_known, right + size * is_right
    share = f"{100 * known / whole:.1f} | {100 * right / whole:.1f}"
    return f"| {directory.name} | {whole:,} | {len(topics)} | {share} | {seconds:.1f} |"


def _list_prose(directory: Path) -> list[str]:
    command = ["git", "-C", str(directory), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return [
        path
        for path in listed.split("\0")
        if path.endswith(PROSE)
        and not (directory / path).is_symlink()
        and (directory / path).is_file()
    ]


def main() -> None:
    """Print the table of all groups; projects that are not there are left out."""
    print("| project | characters | topics | taken or named, % | in the right place, % | s |")
    print("|---|---|---|---|---|---|")
    for group in (PLACES, KEPT_ASIDE, LOOKED_AT_ONCE, AFTER_THE_REWRITE):
        for name, places in group.items():
            if (Path(sys.argv[1]) / name).exists():
                print(measure(Path(sys.argv[1]) / name, places), flush=True)


if __name__ == "__main__":
    main()
