"""Configuration files on disk: found files, refused files and hostile files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.config.load import list_exclusions, load_config, read_layers
from llm_kb.config.settings import Config, Layer, Origin
from llm_kb.config.trust import set_trust
from llm_kb.config.workspace import (
    MAX_BYTES,
    find_cwd,
    find_workspace,
    mentions_auto,
)
from llm_kb.errors import ConfigError, KbError
from llm_kb.knowledge_base.kinds import given_kinds
from tests.conftest import RunLlm
from tests.scripted import Script

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
root_only = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A directory with one topic, below another to work in."""
    root = tmp_path / "w"
    (root / "kb" / "project").mkdir(parents=True)
    (root / "llm-kb.toml").write_text('[kb.topic.project]\nsubjects = "kb/project"\n')
    return root


@pytest.fixture
def write(workspace: Path) -> Callable[[str], Path]:
    """Write the workspace's file."""

    def write(text: str) -> Path:
        path = workspace / "llm-kb.toml"
        path.write_text(text)
        return path

    return write


def load(
    cwd: Path | None,
    user_dir: Path,
    *fragments: str,
    environ: dict[str, str] | None = None,
) -> Config:
    return load_config(
        cwd,
        user_dir=user_dir,
        environ=environ if environ is not None else {"HOME": str(user_dir.parent)},
        fragments=fragments,
        given=given_kinds(),
    )


def problems_of(cwd: Path | None, user_dir: Path, *fragments: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(cwd, user_dir, *fragments)
    return caught.value.problems


# Finding


def test_without_any_file_the_defaults_stand(tmp_path: Path, user_dir: Path) -> None:
    config = load(tmp_path, user_dir)
    assert (config.topics, config.workspace, config.auto) == ((), None, False)


def test_the_nearest_directory_wins(workspace: Path) -> None:
    inner = workspace / "a"
    (inner / "b" / "c").mkdir(parents=True)
    (inner / "llm-kb.toml").touch()
    assert find_workspace(inner / "b" / "c", {}, user_dir=Path("/u")) == inner / "llm-kb.toml"
    assert find_workspace(workspace / "kb", {}, user_dir=Path("/u")) == workspace / "llm-kb.toml"


@pytest.mark.parametrize(
    ("value", "path", "root"),
    [
        pytest.param("{w}/conf/x.toml", "conf/x.toml", "conf", id="any name"),
        pytest.param("conf/x.toml", "conf/x.toml", "conf", id="relative to cwd"),
        pytest.param("kb/../conf/x.toml", "conf/x.toml", "conf", id="normalised"),
    ],
)
def test_the_environment_names_the_file(workspace: Path, value: str, path: str, root: str) -> None:
    (workspace / "conf").mkdir()
    (workspace / "conf/x.toml").touch()
    environ = {"LLM_KB_CONFIG": value.format(w=workspace)}
    assert find_workspace(workspace, environ, user_dir=Path("/u")) == workspace / path


def test_the_environment_may_name_it_from_home(workspace: Path, home: Path) -> None:
    (home / "x.toml").touch()
    assert (
        find_workspace(workspace, {"LLM_KB_CONFIG": "~/x.toml"}, user_dir=Path("/u"))
        == home / "x.toml"
    )


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_turns_the_workspace_off(workspace: Path, value: str) -> None:
    assert find_workspace(workspace, {"LLM_KB_CONFIG": value}, user_dir=Path("/u")) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("nowhere.toml", "found 'nowhere.toml', but there is no such file"),
        ("a\0b", "found 'a\\x00b', but there is no such file"),
        ("x" * 5000, f"found '{'x' * 296}..., but there is no such file"),
    ],
)
def test_a_variable_that_names_nothing_is_an_error(
    workspace: Path, value: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        find_workspace(workspace, {"LLM_KB_CONFIG": value}, user_dir=Path("/u"))
    assert (caught.value.where, caught.value.problems) == ("LLM_KB_CONFIG", (problem,))


def test_the_users_own_file_is_no_workspace(tmp_path: Path) -> None:
    user_dir = tmp_path / ".llm"
    user_dir.mkdir()
    (user_dir / "kb.toml").write_text('[kb.topic.mine]\nsubjects = "/srv/notes"\n')
    config = load(tmp_path, user_dir)
    assert config.workspace is None
    assert config.settings["kb.topic.mine.subjects"].origins == (
        Origin(layer=Layer.USER, place=str(user_dir / "kb.toml")),
    )


def test_a_deleted_current_directory_leaves_the_user_layer(
    tmp_path: Path, user_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_cwd() is None
    (user_dir / "kb.toml").write_text("[kb]\nmax_result_chars = 7\n")
    assert load(find_cwd(), user_dir).max_result_chars == 7
    with pytest.raises(ConfigError, match="there is no such file"):
        find_workspace(None, {"LLM_KB_CONFIG": "x.toml"}, user_dir=Path("/u"))


def test_an_empty_file_is_fine(
    workspace: Path, user_dir: Path, write: Callable[[str], Path]
) -> None:
    write("")
    (user_dir / "kb.toml").touch()
    assert load(workspace, user_dir).topics == ()


def test_layers_lie_over_one_another(
    workspace: Path, user_dir: Path, write: Callable[[str], Path]
) -> None:
    write('[kb]\nmenu = "subjects"\n[kb.topic.project]\nsubjects = "kb/project"\n')
    (user_dir / "kb.toml").write_text(
        '[kb]\nmenu = "topics"\nmax_result_chars = 1\n[kb.topic.notes]\nsubjects = "~/notes"\n'
    )
    config = load(workspace, user_dir, "kb.max_result_chars=2", 'kb.topic.notes.learned+="**"')
    assert (config.menu, config.max_result_chars) == ("subjects", 2)
    assert [(t.id, t.root, t.learned) for t in config.topics] == [
        ("notes", user_dir.parent / "notes", ("**",)),
        ("project", workspace / "kb" / "project", ()),
    ]
    assert [origin.layer for origin in config.settings["kb.max_result_chars"].origins] == [
        Layer.USER,
        Layer.COMMAND_LINE,
    ]


# Reading


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(
            b"a\0b",
            "is not valid TOML: line 1, column 2: Expected '=' after a key in a key/value pair",
            id="NUL",
        ),
        pytest.param(b"\xff\xfea\0", "is not UTF-8 (line 1); save it as UTF-8", id="UTF-16"),
        pytest.param(b"# \n\n# \xe9\n", "is not UTF-8 (line 3); save it as UTF-8", id="Latin-1"),
        pytest.param(
            b"x" * (MAX_BYTES + 1),
            "is larger than 1,000,000 bytes, the most allowed",
            id="huge",
        ),
        pytest.param(
            b"a = " + b"[" * 50_000, "is not valid TOML: it is nested too deeply", id="deep"
        ),
    ],
)
def test_a_file_that_is_no_toml_is_refused(
    workspace: Path, user_dir: Path, data: bytes, problem: str
) -> None:
    (workspace / "llm-kb.toml").write_bytes(data)
    assert problems_of(workspace, user_dir) == (problem,)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[kb]\n[kb]\n", id="duplicate table"),
        pytest.param("[kb]\nauto = true\nauto = false\n", id="duplicate key"),
        pytest.param("kb = 1\n[kb.topic.x]\n", id="contradiction"),
        pytest.param("[kb]\nmax_result_chars = " + "9" * 5000, id="a number no one can count to"),
        pytest.param("[kb\n", id="unclosed"),
    ],
)
def test_malformed_toml_names_the_file(
    workspace: Path, user_dir: Path, write: Callable[[str], Path], text: str
) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load(workspace, user_dir)
    assert caught.value.where == str(path)
    assert caught.value.problems[0].startswith("is not valid TOML: ")
    assert str(caught.value).startswith(f"{path} is not valid TOML: ")


def test_malformed_toml_names_the_line_first(
    workspace: Path, user_dir: Path, write: Callable[[str], Path]
) -> None:
    write("abc x = 1")
    with pytest.raises(ConfigError, match=r"is not valid TOML: line 1, column 5: Expected '='"):
        load(workspace, user_dir)


def test_a_byte_order_mark_passes(workspace: Path, user_dir: Path) -> None:
    (workspace / "llm-kb.toml").write_bytes(b"\xef\xbb\xbf[kb]\r\nmax_result_chars = 5\r\n")
    assert load(workspace, user_dir).max_result_chars == 5


def test_a_directory_in_the_files_place_is_refused(workspace: Path, user_dir: Path) -> None:
    (workspace / "llm-kb.toml").unlink()
    (workspace / "llm-kb.toml").mkdir()
    (problem,) = problems_of(workspace, user_dir)
    assert problem in {
        "cannot be read: not a regular file",
        "cannot be read: Permission denied",  # Windows
    }


@posix_only
def test_a_fifo_in_the_files_place_is_refused_at_once(workspace: Path, user_dir: Path) -> None:
    (workspace / "llm-kb.toml").unlink()
    os.mkfifo(workspace / "llm-kb.toml")
    assert problems_of(workspace, user_dir) == ("cannot be read: not a regular file",)


@posix_only
def test_a_dangling_link_is_told(workspace: Path, user_dir: Path) -> None:
    (workspace / "llm-kb.toml").unlink()
    (workspace / "llm-kb.toml").symlink_to("gone.toml")
    assert problems_of(workspace, user_dir) == ("cannot be read: No such file or directory",)


@posix_only
def test_a_linked_file_belongs_to_where_the_link_is(
    workspace: Path, user_dir: Path, tmp_path: Path
) -> None:
    (workspace / "llm-kb.toml").rename(tmp_path / "shared.toml")
    (workspace / "llm-kb.toml").symlink_to(tmp_path / "shared.toml")
    assert load(workspace, user_dir).topics[0].root == workspace / "kb" / "project"


@root_only
def test_a_file_of_someone_else_is_refused(
    workspace: Path, user_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(workspace / "llm-kb.toml", 12345, 12345)
    assert problems_of(workspace, user_dir) == (
        (
            "is refused: it belongs to another user (uid 12345); look at it, then run "
            "'llm kb trust' to use it, or set LLM_KB_CONFIG to an empty value to work without a "
            "workspace"
        ),
    )
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert len(load(workspace, user_dir).topics) == 1


@root_only
def test_a_link_of_someone_else_is_refused(workspace: Path, user_dir: Path, tmp_path: Path) -> None:
    (workspace / "llm-kb.toml").rename(tmp_path / "mine.toml")
    (workspace / "llm-kb.toml").symlink_to(tmp_path / "mine.toml")
    os.chown(workspace / "llm-kb.toml", 12345, 12345, follow_symlinks=False)
    assert problems_of(workspace, user_dir)[0].startswith("is refused: ")


def give_away(*paths: Path) -> None:
    for path in paths:
        os.chown(path, 12345, 12345, follow_symlinks=False)


@root_only
def test_a_trusted_checkout_of_someone_else_is_used(
    workspace: Path, user_dir: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container with a mounted checkout: refused with the way out, then used silently."""
    monkeypatch.chdir(workspace)
    file = workspace / "llm-kb.toml"
    file.write_text('[kb]\nauto = true\n[kb.topic.project]\nsubjects = "kb/project"\n')
    (workspace / "kb/project/a.md").write_text("A\n")
    give_away(workspace, file, workspace / "kb", workspace / "kb/project")
    refused = run_llm(["kb", "show", "--as-model", "project"])
    assert (refused.exit_code, "run 'llm kb trust' to use it" in refused.stderr) == (1, True)

    trusted = run_llm(["kb", "trust", "-y"])
    assert trusted.exit_code == 0
    assert f"{workspace} belongs to another user (uid 12345)" in trusted.stderr
    assert "Its topics: project\n" in trusted.stderr

    used = run_llm(["kb", "show", "--as-model", "project/a"])
    assert (used.exit_code, used.stdout, used.stderr) == (0, "A\n", "")
    assert run_llm(["kb", "trust"]).stderr.endswith("is trusted already\n")

    file.write_text('[kb.topic.project]\nsubjects = "kb"\n')
    changed = run_llm(["kb", "show", "--as-model", "project"])
    assert changed.exit_code == 1
    assert f"is refused: {workspace} belongs to another user" in changed.stderr


@root_only
def test_ones_own_configuration_in_a_checkout_of_someone_else_is_trusted_and_used(
    workspace: Path, user_dir: Path, run_llm: RunLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container in which `init` was run."""
    monkeypatch.chdir(workspace)
    (workspace / "llm-kb.toml").unlink()
    (workspace / "kb/project/a.md").write_text("Walruses swim.\n")
    give_away(workspace, workspace / "kb", workspace / "kb/project", workspace / "kb/project/a.md")
    made = run_llm(["kb", "init"])
    assert "llm uses a configuration here only after 'llm kb trust'" in made.stderr
    refused = run_llm(["kb", "show", "--as-model", "project"])
    assert (refused.exit_code, "run 'llm kb trust' to use it" in refused.stderr) == (1, True)
    assert run_llm(["kb", "trust", "-y"]).exit_code == 0
    used = run_llm(["kb", "show", "project/a"])
    assert (used.exit_code, used.stdout, used.stderr) == (0, "Walruses swim.\n", "")


@root_only
def test_a_checkout_of_someone_else_may_not_lead_to_other_places(
    workspace: Path, user_dir: Path
) -> None:
    environ = {"HOME": str(user_dir.parent)}
    file = workspace / "llm-kb.toml"
    give_away(file)
    layers = read_layers(workspace, user_dir=user_dir, environ=environ, any_owner=True)
    set_trust(file, layers.digest, user_dir)
    assert len(load(workspace, user_dir).topics) == 1
    (workspace / "kb/project").rmdir()
    (workspace / "kb/project").symlink_to("/etc")
    (problem,) = problems_of(workspace, user_dir)
    assert "a directory inside the workspace" in problem


# Directories


@pytest.mark.parametrize("target", ["/etc", "../outside"])
@posix_only
def test_a_workspace_directory_may_not_lead_out_through_a_link(
    workspace: Path, user_dir: Path, write: Callable[[str], Path], target: str
) -> None:
    write('[kb.topic.p]\nsubjects = "out/inner"\n')
    (workspace.parent / "outside").mkdir()
    (workspace / "out").symlink_to(target)
    (problem,) = problems_of(workspace, user_dir)
    assert problem.startswith("kb.topic.p.subjects: found 'out/inner', which leads to '")
    assert problem.endswith(
        f"allowed: a directory inside the workspace '{workspace}'; `allow_links_to` under [kb] of"
        " your own kb.toml permits another one"
    )
    outside = (workspace / target).resolve()
    user_dir.mkdir(parents=True, exist_ok=True)
    (user_dir / "kb.toml").write_text(f'[kb]\nallow_links_to = ["{outside}"]\n')
    assert load(workspace, user_dir).topics[0].root == outside / "inner"
    (user_dir / "kb.toml").write_text(f'[kb]\nallow_links_to = ["{outside}x"]\n')
    assert len(problems_of(workspace, user_dir)) == 1


@posix_only
def test_a_loop_of_links_is_no_crash(
    workspace: Path, user_dir: Path, write: Callable[[str], Path]
) -> None:
    write('[kb.topic.p]\nsubjects = "loop"\n')
    (workspace / "loop").symlink_to("loop")
    assert len(load(workspace, user_dir).topics) == 1


def test_a_missing_directory_is_no_error(
    workspace: Path, user_dir: Path, write: Callable[[str], Path]
) -> None:
    write('[kb.topic.p]\nsubjects = "nowhere"\n')
    assert load(workspace, user_dir).topics[0].root == workspace / "nowhere"


@posix_only
def test_a_workspace_reached_through_a_link_holds_its_own_directories(
    workspace: Path, user_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(workspace)
    config = load(tmp_path / "link", user_dir)
    assert (config.workspace, config.topics[0].root) == (
        tmp_path / "link",
        workspace / "kb" / "project",
    )


# What only a trusted workspace gets


@pytest.fixture
def private(user_dir: Path, write: Callable[[str], Path]) -> Path:
    """A workspace that turns `auto` on and reaches for a topic of the user."""
    (user_dir / "kb.toml").write_text('[kb.topic.notes]\nsubjects = "~/notes"\n')
    return write(
        '[kb]\nauto = true\n[kb.topic.notes]\nlearned = ["**"]\n'
        '[kb.topic.project]\nsubjects = "kb/project"\nlearned = ["*"]\n'
    )


def test_an_untrusted_workspace_gets_neither_auto_nor_the_users_subjects(
    workspace: Path, user_dir: Path, private: Path
) -> None:
    config = load(workspace, user_dir)
    assert config.withheld == ("kb.auto", "kb.topic.notes.learned")
    assert config.auto is False
    assert {topic.id: topic.learned for topic in config.topics} == {"notes": (), "project": ("*",)}


def test_a_trusted_one_gets_both_until_it_changes(
    workspace: Path, user_dir: Path, private: Path
) -> None:
    layers = read_layers(workspace, user_dir=user_dir, environ={"HOME": str(user_dir.parent)})
    set_trust(private, layers.digest, user_dir)
    config = load(workspace, user_dir)
    assert (config.auto, config.withheld) == (True, ())
    assert {topic.id: topic.learned for topic in config.topics} == {
        "notes": ("**",),
        "project": ("*",),
    }
    private.write_text(private.read_text() + "# a comment changes nothing\n")
    assert load(workspace, user_dir).withheld == ()
    private.write_text(private.read_text() + 'title = "New"\n')
    assert load(workspace, user_dir).withheld == ("kb.auto", "kb.topic.notes.learned")


def test_trust_ends_when_a_directory_leads_elsewhere(
    workspace: Path, user_dir: Path, private: Path
) -> None:
    environ = {"HOME": str(user_dir.parent)}
    set_trust(private, read_layers(workspace, user_dir=user_dir, environ=environ).digest, user_dir)
    assert load(workspace, user_dir).auto is True
    (workspace / "kb" / "project").rmdir()
    (workspace / "kb" / "other").mkdir()
    (workspace / "kb" / "project").symlink_to("other")
    assert load(workspace, user_dir).auto is False


def test_the_users_own_auto_stands_where_the_workspaces_is_withheld(
    workspace: Path, user_dir: Path, private: Path
) -> None:
    (user_dir / "kb.toml").write_text("[kb]\nauto = true\n[kb.topic.notes]\nsubjects = 'n'\n")
    config = load(workspace, user_dir)
    assert (config.auto, "kb.auto" in config.withheld) == (True, True)


# Config fragments


@pytest.fixture
def fragment(workspace: Path) -> Path:
    """A fragment that `review` names."""
    path = workspace / ".llm" / "config.d" / "kb" / "review.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[kb.topic.project]\nlearned = ["maintainers/*"]\n')
    return path


@pytest.mark.parametrize("text", ["kb/review", "./.llm/config.d/kb/review.toml", "{path}"])
def test_a_fragment_is_found_by_name_and_by_path(
    workspace: Path, user_dir: Path, fragment: Path, text: str
) -> None:
    config = load(workspace, user_dir, text.format(path=fragment))
    assert config.topics[0].learned == ("maintainers/*",)
    assert config.settings["kb.topic.project.learned"].origins == (
        Origin(layer=Layer.FRAGMENT, place=str(fragment)),
    )


@pytest.mark.parametrize("text", ["own.toml", "./own", "~/own.toml", "kb/own=1.toml"])
def test_a_path_is_told_from_a_name(workspace: Path, user_dir: Path, text: str) -> None:
    home = user_dir.parent
    for path in (workspace / "own", workspace / "own.toml", home / "own.toml", workspace / text):
        path.parent.mkdir(exist_ok=True)
        path.write_text("[kb]\nmax_result_chars = 3\n")
    assert load(workspace, user_dir, text).max_result_chars == 3


def test_an_unknown_fragment_is_told_with_what_there_is(
    workspace: Path, user_dir: Path, fragment: Path
) -> None:
    with pytest.raises(KbError) as caught:
        load(workspace, user_dir, "kb/reveiw")
    assert str(caught.value) == (
        "unknown config fragment 'kb/reveiw'; available: kb/review "
        f"(in {workspace / '.llm' / 'config.d'}); did you mean 'kb/review'?"
    )


def test_a_directory_to_look_in_may_lie_above(workspace: Path, user_dir: Path) -> None:
    shared = workspace.parent / "common"
    shared.mkdir()
    (shared / "review.toml").write_text("[kb]\nmax_result_chars = 3\n")
    (user_dir / "kb.toml").write_text('[kb]\nconfig_load_paths = ["../common"]\n')
    assert load(workspace, user_dir, "review").max_result_chars == 3


def test_an_assignment_to_a_mistyped_topic_names_the_near_one(
    workspace: Path, user_dir: Path
) -> None:
    (user_dir / "kb.toml").write_text('[kb.topic.project]\nsubjects = "~/notes"\n')
    text = "kb.topic.projct.learned+=x"
    with pytest.raises(ConfigError) as caught:
        load(workspace, user_dir, text)
    assert str(caught.value) == (
        f"--kb-cfg {text}: kb.topic.projct: unknown topic 'projct'; valid topics: project; "
        "did you mean 'project'?"
    )


@pytest.mark.parametrize("text", ["", " ", "a\0b"])
def test_a_fragment_needs_a_name(workspace: Path, user_dir: Path, text: str) -> None:
    (problem,) = problems_of(workspace, user_dir, text)
    assert problem == f"found {text!r}; allowed: a name, a path or KEY=VALUE"


def test_a_fragment_of_the_workspace_speaks_as_the_workspace(
    workspace: Path, user_dir: Path, fragment: Path
) -> None:
    (user_dir / "kb.toml").write_text('[kb.topic.notes]\nsubjects = "~/notes"\n')
    fragment.write_text('[kb.topic.notes]\nlearned = ["**"]\n')
    assert problems_of(workspace, user_dir, "kb/review") == (
        (
            "kb.topic.notes.learned: your own topics are not this file's to show; "
            "use -k or an assignment"
        ),
    )
    fragment.write_text("[kb]\nauto = true\n[kb.topic.notes]\nenable = false\n")
    config = load(workspace, user_dir, "kb/review")
    assert (config.auto, config.topics[0].enable) == (True, False)
    fragment.write_text('[kb.topic.notes]\nsubjects = "/etc"\n')
    assert problems_of(workspace, user_dir, "kb/review")[0].startswith(
        "kb.topic.notes.subjects: found '/etc'; allowed: a relative path inside the workspace"
    )
    fragment.write_text('[kb]\nallow_links_to = ["/"]\n')
    assert problems_of(workspace, user_dir, "kb/review")[0].startswith(
        "kb.allow_links_to: not allowed in the config fragment layer"
    )


def test_a_fragment_from_elsewhere_is_the_users_word(
    workspace: Path, user_dir: Path, tmp_path: Path
) -> None:
    (user_dir / "kb.toml").write_text('[kb.topic.notes]\nsubjects = "~/notes"\n')
    own = tmp_path / "own.toml"
    own.write_text('[kb.topic.notes]\nlearned = ["**"]\n[kb.topic.logs]\nsubjects = "/var/log"\n')
    config = load(workspace, user_dir, str(own))
    assert config.withheld == ()
    assert [(topic.id, topic.learned) for topic in config.topics] == [
        ("notes", ("**",)),
        ("project", ()),
        ("logs", ()),
    ]


def test_what_a_run_excludes_stays_excluded(workspace: Path, user_dir: Path) -> None:
    excluded = ['kb.topic.project.disabled+="old \U0001f5d1/*"', "kb.topic.llm-kb.enable=false"]
    first = load(workspace, user_dir, *excluded, "kb.topic.project.title=T")
    excluded = list(list_exclusions(first))
    again = load_config(
        workspace, user_dir=user_dir, environ={}, excluded=excluded, given=given_kinds()
    )
    assert again.topics == (replace(first.topics[0], title=None),)
    assert again.adjustments == first.adjustments


def test_an_assignment_adds_a_place_to_look_for_the_next(workspace: Path, user_dir: Path) -> None:
    (workspace / "more").mkdir()
    (workspace / "more" / "x.toml").write_text("[kb]\nmax_result_chars = 3\n")
    assert load(workspace, user_dir, "kb.config_load_paths+=more", "x").max_result_chars == 3


def test_relative_directories_of_an_assignment_start_from_the_workspace(
    workspace: Path, user_dir: Path
) -> None:
    config = load(workspace / "kb", user_dir, "kb.topic.docs.subjects=docs")
    assert config.topics[1].root == workspace / "docs"


# The cheap look


@pytest.mark.parametrize(
    ("user", "work", "mentions"),
    [
        pytest.param(None, None, False, id="neither"),
        pytest.param("[kb]\nauto = true\n", None, True, id="user"),
        pytest.param(None, "[kb]\nauto = true\n", True, id="workspace"),
        pytest.param("[kb]\n", "[kb]\nmenu = 'topics'\n", False, id="other keys"),
        pytest.param(None, "[[[ auto", True, id="broken: whoever parses it will say so"),
    ],
)
def test_auto_is_looked_for_cheaply(
    tmp_path: Path, user_dir: Path, user: str | None, work: str | None, mentions: bool
) -> None:
    if user is not None:
        (user_dir / "kb.toml").write_text(user)
    if work is not None:
        (tmp_path / "llm-kb.toml").write_text(work)
    assert mentions_auto(tmp_path, user_dir, {}) is mentions


def test_looking_for_auto_never_raises(tmp_path: Path, user_dir: Path) -> None:
    (tmp_path / "llm-kb.toml").mkdir()
    (user_dir / "kb.toml").mkdir()
    assert mentions_auto(tmp_path, user_dir, {}) is False
    assert mentions_auto(None, Path("/nowhere"), {"LLM_KB_CONFIG": "x"}) is False
    assert mentions_auto(Path("/gone"), Path("/nowhere"), {"LLM_KB_CONFIG": "a\0"}) is False


@root_only
def test_a_plain_request_in_a_checkout_of_someone_else_says_so_until_it_is_trusted(
    workspace: Path,
    user_dir: Path,
    run_llm: RunLlm,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(workspace)
    (workspace / "llm-kb.toml").write_text(
        '[kb]\nauto = true\n[kb.topic.project]\nsubjects = "kb/project"\n'
    )
    (workspace / "kb/project/a.md").write_text("A\n")
    give_away(workspace / "llm-kb.toml", workspace / "kb/project")
    result = run_llm(["-m", "scripted", "hi"])
    assert (result.exit_code, script.last.tools) == (0, ())
    assert result.stderr.startswith(
        f"llm-kb: auto left out: {workspace}/llm-kb.toml is refused: it belongs to another user"
    )
    assert run_llm(["kb", "trust", "-y"]).exit_code == 0
    result = run_llm(["-m", "scripted", "hi"])
    assert (result.stderr, script.last.tool_names) == ("", ("learn",))


def test_looking_for_auto_loads_no_toml_reader(
    tmp_path: Path, run_python: Callable[[str], str]
) -> None:
    said = run_python(
        "import sys; from pathlib import Path; from llm_kb.config.workspace import mentions_auto\n"
        "mentions_auto(Path.cwd(), Path('/nowhere'), {})\n"
        "heavy = {'tomllib', 'tomli', 'tomlkit', 'difflib', 'llm', 'click'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert said == "[]\n"


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Run code in a fresh interpreter and return what it printed."""
    import subprocess  # noqa: PLC0415 - for this fixture alone

    def run(code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
        ).stdout

    return run
