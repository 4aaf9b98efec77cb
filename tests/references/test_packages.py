"""The documentation of packages: the version that is installed, its tag, its documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from llm_kb.references.calls import search_references as ask
from llm_kb.references.errors import NothingFetchedError, TopicFileError
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.lookup import topic_entry
from llm_kb.references.sources import packages
from llm_kb.references.sources.installed import Package, as_git_url, find_installed
from llm_kb.references.sources.packages import choose_documents, find_directory, list_tags
from llm_kb.references.sources.records import GitSource, PackageSource
from llm_kb.references.topic.topic_file import parse_request
from tests.cost import at_most
from tests.references.remotes import Remote
from tests.references.requests import files_of, never, plan_topic, request, yes
from tests.references.sites import Site

FROB = PackageSource(ecosystem="pypi", name="Frob_Nicate")


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def install(workspace: Path, version: str, url: str) -> None:
    """Install a Python package, and nothing of it but its metadata."""
    site = workspace / ".venv/lib/python3.12/site-packages"
    for old in site.glob("frob*/METADATA"):
        old.unlink()
        old.parent.rmdir()
    metadata = (
        f"Metadata-Version: 2.1\nName: frob-nicate\nVersion: {version}\n"
        "Project-URL: Documentation, https://docs.example/\n"
        f"Project-URL: Source Code, {url}\n\nVersion: 9.9 in the description\n"
    )
    write(site, {f"frob_nicate-{version}.dist-info/METADATA": metadata})


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, outside any environment."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return tmp_path / "workspace"


@pytest.fixture
def released(remote: Remote) -> Remote:
    """A repository with two versions."""
    remote.git("tag", "v1.0")
    remote.write({"docs/guide.md": "# Guide to version 2\n", "CHANGELOG.md": "# 2.0\n"})
    remote.git("tag", "v2.0")
    remote.write({"docs/guide.md": "# Not released\n"})
    return remote


def test_the_documents_of_the_installed_version_are_fetched_and_followed(
    library: Library, released: Remote, workspace: Path
) -> None:
    library = replace(library, workspace=workspace)
    install(workspace, "1.0", released.url)

    create_topic(library, request(FROB), yes)

    (source,) = library.read("topic-frob").sources
    assert source == GitSource(
        url=released.url,
        ref="v1.0",
        commit=released.git("rev-parse", "v1.0"),
        paths=("README.md", "docs/"),
        package="pypi Frob_Nicate 1.0",
    )
    assert list(files_of(library)) == ["README.md", "docs/guide.md"]
    assert "warnings" not in ask(library, "hooks")
    assert refresh_topic(library, "topic-frob", never)["changed"] is False

    install(workspace, "2.0", released.url)
    assert ask(library, "hooks")["warnings"] == [
        "topic-frob: it is of pypi Frob_Nicate 1.0, but 2.0 is installed here; to follow: llm kb"
        " references refresh topic-frob"
    ]
    topic = library.read("topic-frob")
    entry = topic_entry(topic, library.clock(), library.find_outdated(topic))
    assert (entry["status"], entry["is_stale"]) == ("stale", True)
    assert refresh_topic(library, "topic-frob", never)["modified"] == 1
    assert files_of(library)["docs/guide.md"] == "# Guide to version 2\n"
    (source,) = library.read("topic-frob").sources
    assert isinstance(source, GitSource)
    assert (source.ref, source.package) == ("v2.0", "pypi Frob_Nicate 2.0")
    assert "warnings" not in ask(library, "guide")


def test_two_packages_have_a_folder_each(
    library: Library, released: Remote, workspace: Path, tmp_path: Path
) -> None:
    other = Remote(tmp_path / "remotes" / "other")
    other.write({"docs/b.md": "# B"})
    other.git("tag", "2.0")
    install(workspace, "2.0", released.url)
    node = json.dumps({"version": "2.0", "repository": {"url": other.url}})
    write(workspace, {"node_modules/other/package.json": node})
    library = replace(library, workspace=workspace)
    create_topic(library, request(FROB, PackageSource(ecosystem="npm", name="other")), yes)
    assert {path.split("/")[0] for path in files_of(library)} == {"frob", "other"}
    assert refresh_topic(library, "topic-frob", never)["changed"] is False


def test_a_refresh_looks_for_a_new_version_where_the_topic_was_fetched_from(
    library: Library, released: Remote, workspace: Path, tmp_path: Path
) -> None:
    """The metadata of another workspace may name any repository; none but the approved is asked."""
    library = replace(library, workspace=workspace)
    install(workspace, "1.0", released.url)
    create_topic(library, request(FROB), yes)
    evil = Remote(tmp_path / "evil", {"docs/guide.md": "evil"})
    evil.git("tag", "v2.0")
    install(workspace, "2.0", evil.url)
    evil.directory.rename(tmp_path / "gone")  # asking it fails
    assert refresh_topic(library, "topic-frob", never)["modified"] == 1
    assert files_of(library)["docs/guide.md"] == "# Guide to version 2\n"


@pytest.mark.parametrize(
    "package",
    ["frob", "pypi frob", "pypi frob 1 0", "x frob 1.0", "npm ../../x 1", "pypi frob \x1b", ""],
)
def test_what_does_not_name_a_package_is_refused(package: str) -> None:
    """It comes from models, and from records that others wrote."""
    fields = {"title": "T", "body": ""}
    source = {"type": "git", "url": "https://e.org/x", "package": package}
    with pytest.raises(TopicFileError):
        parse_request({**fields, "sources": [source]}, created_by={})


@pytest.mark.parametrize(
    ("version", "url"),
    [
        ("1.0 beta", "https://e.org/x"),
        ("--upload-pack=x", "https://e.org/x"),
        ("1.0", "https://user:word@e.org/x"),
        ("1.0", "ext::sh -c evil"),
        ("1.0", f"https://e.org/{'x' * 2000}"),
        ("1.0", "https://%6cocalhost/x"),
        ("1.0", "https://[/x"),
        ("1.0", "https://e.org:99999/x"),
    ],
)
def test_hostile_metadata_is_a_problem_of_its_source(
    library: Library, workspace: Path, version: str, url: str
) -> None:
    install(workspace, version, url)
    with pytest.raises(NothingFetchedError):
        plan_topic(replace(library, workspace=workspace), request(FROB))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("requirements.txt", "a[\n" * 300_000, id="open brackets"),
        pytest.param("requirements.txt", "a" * 1_000_000, id="a long name"),
        pytest.param("requirements.txt", "a\n" * 300_000 + " " * 300_000, id="blanks"),
        pytest.param("go.mod", "\n" * 1_000_000, id="blank lines"),
        pytest.param("go.mod", " " * 1_000_000, id="a blank line"),
        pytest.param("uv.lock", "a." * 500_000, id="a long key"),
        pytest.param("uv.lock", "[[package]]\n" * 100_000, id="packages without a name"),
        pytest.param("Cargo.lock", '[[package]]\nname = "' * 50_000, id="open names"),
    ],
)
def test_no_file_of_a_workspace_is_read_for_long(workspace: Path, name: str, text: str) -> None:
    """A search looks whether the packages of its topics are those of the workspace."""
    write(workspace, {name: text})
    with at_most(1):
        for ecosystem, package in (("pypi", "a"), ("crate", "a")):
            find_installed(ecosystem, package, workspace)


def test_a_repository_is_asked_under_the_name_that_is_checked() -> None:
    assert as_git_url("https://fa\u00df.example/x") == "https://xn--fa-hia.example/x"


def test_an_index_names_the_repository_of_the_newest_version_and_of_one_asked_for(
    library: Library,
    released: Remote,
    workspace: Path,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(packages.REGISTRIES, "pypi", f"{site.url}/root/pypi/{{}}/json")
    info = {"version": "2.0", "project_urls": {"Repository": released.url}}
    site.put("/root/pypi/frob/json", json.dumps({"info": info}))
    library = replace(library, workspace=workspace)
    newest = plan_topic(library, request(replace(FROB, name="frob")))
    asked = plan_topic(library, request(replace(FROB, name="frob", version="1.0")))
    found = [plan.sources[0].source for plan in (newest, asked)]
    assert [source.ref for source in found if isinstance(source, GitSource)] == ["v2.0", "v1.0"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("{", "its metadata names no repository; give it with type git"),
        ("[]", "its metadata names no repository; give it with type git"),
        ('{"info": {"version": "1.0", "project_urls": {"Source": "javascript:x"}}}', "names no"),
        (None, "the server answered 404"),
    ],
)
def test_an_index_may_answer_anything(
    library: Library, site: Site, monkeypatch: pytest.MonkeyPatch, answer: str | None, reason: str
) -> None:
    monkeypatch.setitem(packages.REGISTRIES, "pypi", f"{site.url}/pypi/{{}}/json")
    if answer is not None:
        site.put("/pypi/frob/json", answer)
    with pytest.raises(NothingFetchedError, match=reason):
        plan_topic(library, request(replace(FROB, name="frob")))


def test_a_version_without_a_tag_says_so(
    library: Library, released: Remote, workspace: Path
) -> None:
    install(workspace, "3.0", released.url)
    with pytest.raises(NothingFetchedError, match=r"has no tag for version 3\.0; give it with"):
        plan_topic(replace(library, workspace=workspace), request(FROB))


LOCK = '[[package]]\nname = "frob-nicate"\nversion = "1.2"\n'


@pytest.mark.parametrize(
    ("ecosystem", "name", "files", "package"),
    [
        ("pypi", "frob.nicate", {"uv.lock": LOCK}, Package(version="1.2")),
        ("pypi", "Frob_Nicate", {"poetry.lock": LOCK}, Package(version="1.2")),
        ("pypi", "frob", {"requirements.txt": "x==1\nFrob[all] == 2.0\n"}, Package(version="2.0")),
        ("pypi", "frob", {"requirements.txt": "frob>=2.0\n"}, None),
        ("pypi", "frob", {"uv.lock": "[[package"}, None),
        ("pypi", "frob", {"uv.lock": "package = 3"}, None),
        ("crate", "frob-nicate", {"Cargo.lock": LOCK}, Package(version="1.2")),
        (
            "npm",
            "@x/frob",
            {"node_modules/@x/frob/package.json": '{"version": "3.1", "repository": {"url": '
             '"git+https://github.com/x/frob.git"}}'},
            Package(version="3.1", repository="https://github.com/x/frob"),
        ),
        (
            "npm",
            "frob",
            {"package-lock.json": '{"packages": {"node_modules/frob": {"version": "3.0"}}}'},
            Package(version="3.0"),
        ),
        ("npm", "frob", {"package-lock.json": "[" * 100_000}, None),
    ],
)  # fmt: skip
def test_versions_are_found_where_they_are_installed_or_locked(
    workspace: Path, ecosystem: str, name: str, files: Mapping[str, str], package: Package | None
) -> None:
    write(workspace, files)
    assert find_installed(ecosystem, name, workspace) == package


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://github.com/pallets/flask", "https://github.com/pallets/flask"),
        ("https://github.com/pallets/flask/tree/main/src#x", "https://github.com/pallets/flask"),
        ("git+ssh://git@github.com/vitejs/vite.git", "https://github.com/vitejs/vite"),
        ("git://github.com/x/y.git", "https://github.com/x/y"),
        ("git@github.com:x/y.git", "https://github.com/x/y"),
        ("github:x/y", "https://github.com/x/y"),
        ("x/y", "https://github.com/x/y"),
        ("https://git.example/x/y.git", "https://git.example/x/y.git"),
        ("https://www.github.com/x/y.git", "https://github.com/x/y"),
        ("https://gitlab.com/group/sub/proj", "https://gitlab.com/group/sub/proj"),
        ("https://gitlab.com/g/s/p/-/tree/main/packages/x", "https://gitlab.com/g/s/p"),
        ("https://gitlab.com/g/p/issues", "https://gitlab.com/g/p"),
        ("https://gitlab.example/g/p/-/tree/main", "https://gitlab.example/g/p"),
        ("git@gitlab.com:g/sub/p.git", "https://gitlab.com/g/sub/p"),
        ("git+ssh://git@gitlab.com/g/p.git", "https://gitlab.com/g/p"),
        ("gitlab:a/b", "https://gitlab.com/a/b"),
        ("gitlab:a/b/c", "https://gitlab.com/a/b/c"),
        ("bitbucket:a/b", "https://bitbucket.org/a/b"),
        ("git@bitbucket.org:a/b.git", "https://bitbucket.org/a/b"),
        ("https://codeberg.org/a/b/src/branch/main/x", "https://codeberg.org/a/b"),
        ("git@codeberg.org:a/b.git", "https://codeberg.org/a/b"),
        ("word", None),
        ("a/b/c", None),
        ("https://github.com/sponsors/x", None),
        ("https://github.com/pallets", None),
        ("ext::sh -c id", None),
        ("", None),
    ],
)
def test_metadata_names_a_repository_in_many_ways(text: str, url: str | None) -> None:
    assert as_git_url(text) == url


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["README.md", "docs/a.md", "src/x.py", "tests/y.py"], ("README.md", "docs/")),
        (["README.md", "src/x.py"], ()),
        (["Documentation/a", "CHANGES.rst", "docs.py"], ("CHANGES.rst", "Documentation/")),
        (
            ["docs_src/a.py", "docs-site/b.md", "samples/c.py", "notebooks/d.ipynb", "sampled/e"],
            ("docs-site/", "docs_src/", "notebooks/", "samples/"),
        ),
    ],
)
def test_documents_are_told_by_their_names(paths: list[str], chosen: tuple[str, ...]) -> None:
    assert choose_documents(paths) == chosen


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["README.md", "packages/x/README.md", "packages/x/docs/a.md", "packages/y/README.md"],
         ("README.md", "packages/x/README.md", "packages/x/docs/")),
        (["docs/a.md", "packages/x/README.md"], ("docs/", "packages/x/README.md")),
        (["README.md", "packages/x/README.md", "packages/x/a.js"], ("packages/x/",)),
        (["README.md", "a.js"], ()),
    ],
)  # fmt: skip
def test_a_package_in_a_directory_has_its_own_documents(
    paths: list[str], chosen: tuple[str, ...]
) -> None:
    assert choose_documents(paths, "packages/x") == chosen


def test_a_package_is_found_by_its_manifest_where_no_metadata_names_its_directory() -> None:
    paths = ["Cargo.toml", "x-util/Cargo.toml", "x/Cargo.toml", "x/tests/x/Cargo.toml", "y/x/a.rs"]
    assert [find_directory(paths, name) for name in ("x", "@org/x", "x-util", "y")] == [
        *("x", "x", "x-util", ""),
    ]


@pytest.mark.parametrize(
    ("name", "version", "tag"),
    [
        ("@scope/pkg", "1.2.3", "@scope/pkg@1.2.3"),
        ("@scope/pkg", "1.2.3", "pkg@1.2.3"),
        ("pkg", "1.2.3", "pkg-v1.2.3"),
        ("pkg", "1.2.3", "pkg/v1.2.3"),
        ("pkg", "1.2.3", "pkg_1.2.3"),
        ("my-pkg", "1.0", "my_pkg-1.0"),
        ("my_pkg", "1.0", "my-pkg-v1.0"),
        ("Pkg", "1.0", "pkg-1.0"),
        ("pkg", "1.2.3", "v1.2.3"),
        ("pkg", "1.2.3", "release-1.2.3"),
        ("pkg", "1.2.0rc1", "v1.2.0-rc.1"),
        ("pkg", "1.2.0rc1", "1.2.0-rc1"),
        ("pkg", "1.2.0b2", "v1.2.0-beta.2"),
        ("pkg", "1.2.0a1", "pkg-v1.2.0-alpha.1"),
        ("pkg", "1.2.0-rc.1", "v1.2.0rc1"),
        ("rustls", "0.23.1", "v/0.23.1"),
        ("rustls-post-quantum", "0.2.0", "rustls-post-quantum-v/0.2.0"),
        ("langchain-core", "0.3.1", "langchain-core==0.3.1"),
    ],
)
def test_releases_are_tagged_in_many_ways(name: str, version: str, tag: str) -> None:
    assert tag in list_tags(name, version)


def test_a_tag_with_the_name_of_the_package_comes_first(
    library: Library, remote: Remote, workspace: Path
) -> None:
    """`v1.0` may be another package's."""
    remote.git("tag", "v1.0")
    remote.write({"packages/frob/README.md": "# Frob\n", "packages/frob/docs/a.md": "# A\n"})
    remote.git("tag", "-a", "-m", "release", "@x/frob@1.0")
    table = {
        "version": "1.0",
        "repository": {"url": remote.url, "directory": "packages/frob"},
    }
    write(workspace, {"node_modules/@x/frob/package.json": json.dumps(table)})
    library = replace(library, workspace=workspace)
    plan = plan_topic(library, request(PackageSource(ecosystem="npm", name="@x/frob")))
    (planned,) = plan.sources
    assert planned.source == GitSource(
        url=remote.url,
        ref="@x/frob@1.0",
        commit=remote.git("rev-parse", "HEAD"),
        paths=("README.md", "docs/", "packages/frob/README.md", "packages/frob/docs/"),
        package="npm @x/frob 1.0",
    )
    assert planned.notes == ("npm @x/frob 1.0: tag @x/frob@1.0 (it names the package)",)


def publish_npm(site: Site, version: str, url: str) -> None:
    """Put a release on a registry, as that answers for one version."""
    table = {"name": "@x/frob", "version": version, "repository": {"url": f"git+{url}"}}
    site.put("/@x%2Ffrob/latest", json.dumps(table))


def publish_crate(site: Site, version: str, url: str) -> None:
    """Put a release on an index of crates."""
    table = {"crate": {"id": "frob", "max_stable_version": version, "repository": url}}
    site.put("/crates/frob", json.dumps(table))


class Registry(NamedTuple):
    """How a registry is published to, a package there, and a lock file that names its version."""

    publish: Callable[[Site, str, str], None]
    source: PackageSource
    lock: str
    locked: str


REGISTRIES = [
    Registry(
        publish_npm,
        PackageSource(ecosystem="npm", name="@x/frob"),
        "package-lock.json",
        '{"packages": {"node_modules/@x/frob": {"version": "VERSION"}}}',
    ),
    Registry(
        publish_crate,
        PackageSource(ecosystem="crate", name="frob"),
        "Cargo.lock",
        '[[package]]\nname = "frob"\nversion = "VERSION"\n',
    ),
]


@pytest.fixture
def registry(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site in the place of npm's registry and of crates.io."""
    monkeypatch.setitem(packages.REGISTRIES, "npm", f"{site.url}/{{}}/latest")
    monkeypatch.setitem(packages.REGISTRIES, "crate", f"{site.url}/crates/{{}}")
    return site


@pytest.mark.parametrize("of", REGISTRIES, ids=["npm", "crate"])
def test_repositories_that_other_registries_name_are_fetched_and_followed(
    library: Library, workspace: Path, registry: Site, released: Remote, of: Registry
) -> None:
    library = replace(library, workspace=workspace)
    for version in ("1.0", "2.0"):
        of.publish(registry, version, released.url)
        write(workspace, {of.lock: of.locked.replace("VERSION", version)})
        if version == "1.0":
            create_topic(library, request(of.source), yes)
        else:
            assert refresh_topic(library, "topic-frob", never)["modified"] == 1
        (kept,) = library.read("topic-frob").sources
        assert kept.package == str(replace(of.source, version=version))
        assert ("version 2" in files_of(library)["docs/guide.md"]) == (version == "2.0")
