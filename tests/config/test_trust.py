"""The record of trusted files, also a damaged one or one with several writers."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from llm_kb.config.layers import Settings
from llm_kb.config.settings import Layer, Origin, Setting
from llm_kb.config.trust import (
    LIMIT_KEY,
    TRUST_FILE,
    Layers,
    find_withheld,
    is_trusted,
    read_trust,
    set_trust,
)
from llm_kb.files.atomic import WriteError

FILE = Path("/w/llm-kb.toml")


def layer(place: str = "x", **values: str) -> Settings:
    said = (Origin(layer=Layer.WORKSPACE, place=place),)
    return {
        f"kb.topic.p.{key}": Setting(value=value, origins=said) for key, value in values.items()
    }


def digest_workspace(workspace: Settings, below: Settings) -> str:
    return Layers(workspace=workspace, below=below, file=None).digest


def test_nothing_is_trusted_at_first(tmp_path: Path) -> None:
    assert is_trusted(FILE, "d", tmp_path) is False
    assert read_trust(tmp_path) == {}


def test_trust_holds_for_one_file_as_one_digest(tmp_path: Path) -> None:
    assert set_trust(FILE, "d", tmp_path) is False
    assert is_trusted(FILE, "d", tmp_path) is True
    assert is_trusted(FILE, "other", tmp_path) is False
    assert is_trusted(Path("/other/llm-kb.toml"), "d", tmp_path) is False


def test_trust_is_withdrawn(tmp_path: Path) -> None:
    set_trust(FILE, "d", tmp_path)
    set_trust(Path("/other"), "e", tmp_path)
    assert set_trust(FILE, None, tmp_path) is True
    assert set_trust(FILE, None, tmp_path) is False
    assert read_trust(tmp_path) == {"/other": "e"}


def test_only_the_user_may_read_the_record(tmp_path: Path) -> None:
    set_trust(FILE, "d", tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new" / TRUST_FILE).stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["kb-trust.json"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"trusted": []}',
        b'{"trusted": null}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_damaged_record_trusts_nothing_and_is_kept(tmp_path: Path, data: bytes) -> None:
    """What can still be read in it, somebody may want to trust again."""
    (tmp_path / TRUST_FILE).write_bytes(data)
    assert read_trust(tmp_path) == {}
    with pytest.raises(WriteError, match="it is damaged; move it away"):
        set_trust(FILE, "d", tmp_path)
    assert (tmp_path / TRUST_FILE).read_bytes() == data


def test_a_value_that_is_no_digest_trusts_nothing(tmp_path: Path) -> None:
    (tmp_path / TRUST_FILE).write_text('{"trusted": {"/w/llm-kb.toml": 1}}')
    assert read_trust(tmp_path) == {}
    assert set_trust(FILE, "d", tmp_path) is False
    assert json.loads((tmp_path / TRUST_FILE).read_bytes()) == {"trusted": {str(FILE): "d"}}


def test_a_directory_in_the_records_place_trusts_nothing(tmp_path: Path) -> None:
    (tmp_path / TRUST_FILE).mkdir()
    assert read_trust(tmp_path) == {}


@pytest.mark.parametrize(
    ("user", "workspace", "is_withheld"),
    [
        (None, 100_000, False),
        (None, 100_001, True),
        (None, 0, True),
        (500, 400, False),
        (500, 600, True),
        (0, 0, False),
        (0, 600, False),
    ],
)
def test_a_workspace_only_lowers_the_limit_of_an_answer(
    user: int | None, workspace: int, *, is_withheld: bool
) -> None:
    origins = (Origin(layer=Layer.USER),)
    below = {} if user is None else {LIMIT_KEY: Setting(value=user, origins=origins)}
    own = {LIMIT_KEY: Setting(value=workspace, origins=origins)}
    assert find_withheld(own, below, Path("/w")) == ((LIMIT_KEY,) if is_withheld else ())


def _trust_one(arguments: tuple[str, Path]) -> None:
    name, user_dir = arguments
    set_trust(Path(name), "d", user_dir)


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"/w{number}" for number in range(20)]
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_trust_one, [(name, tmp_path) for name in names]))
    assert sorted(read_trust(tmp_path) or ()) == sorted(names)


def test_the_digest_is_of_values_not_of_files() -> None:
    below: Settings = {}
    one = digest_workspace(layer(title="a", subjects="/w/kb"), below)
    assert one == digest_workspace(layer("elsewhere", subjects="/w/kb", title="a"), below)
    assert one != digest_workspace(layer(title="b", subjects="/w/kb"), below)
    assert one != digest_workspace(layer(title="a", subjects="/w/other"), below)


def test_the_digest_holds_what_lower_layers_say_of_the_same_topics() -> None:
    workspace = layer(learned="**")
    assert digest_workspace(workspace, layer(subjects="/notes")) != digest_workspace(
        workspace, layer(subjects="/secrets")
    )
    assert digest_workspace({}, layer(subjects="/notes")) == digest_workspace(
        {}, layer(subjects="/secrets")
    )
