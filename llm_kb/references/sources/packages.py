"""What an index of packages says: versions, and the repository of a package."""

from __future__ import annotations

import json
import os
import re
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path
from typing import Any
from urllib.parse import quote

from llm_kb.references.errors import FetchError
from llm_kb.references.sources.http import HttpPolicy, request
from llm_kb.references.sources.installed import (
    Package,
    as_git_url,
    choose_repository,
    find_installed,
    get_table,
    node_repository,
    read_text,
)
from llm_kb.references.sources.records import PackageSource
from llm_kb.references.sources.rules import check_web_url


def find_package(source: PackageSource, workspace: Path | None, policy: HttpPolicy) -> Package:
    """Return the package at the version asked for, installed, or newest, in this order.

    What is installed in the workspace says itself where its repository is; of others the
    index of the user's own configuration is asked. Raises FetchError.
    """
    installed = find_installed(source.ecosystem, source.package, workspace)
    version = source.version or (installed.version if installed else None)
    if installed and installed.version == version and installed.repository:
        return installed
    return _ask_index(source, version, policy)


def _ask_index(source: PackageSource, version: str | None, policy: HttpPolicy) -> Package:
    """Return what an index says of a package; raise FetchError."""
    name = quote(source.package, safe="@")
    if source.ecosystem == "pypi":
        table = _get_json(f"{_pypi()}/{name}{f'/{version}' if version else ''}/json", policy)
        info = get_table(table, "info")
        labelled = {
            str(label).strip().lower(): url
            for label, url in get_table(info, "project_urls").items()
            if isinstance(url, str)
        }
        labelled.setdefault("homepage", str(info.get("home_page") or ""))
        return Package(version=str(info.get("version", "")), repository=choose_repository(labelled))
    if source.ecosystem == "npm":
        table = _get_json(f"{_npm()}/{name.replace('/', '%2F')}/{version or 'latest'}", policy)
        return Package(version=str(table.get("version", "")), repository=node_repository(table))
    crate = get_table(_get_json(f"https://crates.io/api/v1/crates/{name}", policy), "crate")
    newest = str(crate.get("max_stable_version") or crate.get("max_version") or "")
    repository = crate.get("repository")
    return Package(
        version=version or newest,
        repository=as_git_url(repository) if isinstance(repository, str) else None,
    )


def _get_json(url: str, policy: HttpPolicy) -> dict[str, Any]:
    # The user's own configuration may hold a password, which would be kept in plain text.
    check_web_url(url, "index of packages")
    answer = request(url, policy, headers={"Accept": "application/json"})
    if answer.status != 200:
        raise FetchError(url, f"the index answered {answer.status}")
    try:
        table = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise FetchError(url, "the index answered with what is not JSON") from error
    return table if isinstance(table, dict) else {}


def _pypi() -> str:
    """Return the root of the JSON API beside the user's index of Python packages."""
    index = os.environ.get("PIP_INDEX_URL") or _pip_setting("index-url")
    root = (index or "https://pypi.org/simple").rstrip("/").removesuffix("/simple")
    return f"{root}/pypi"


def _pip_setting(key: str) -> str | None:
    home = Path.home()
    places = (home / ".config/pip/pip.conf", home / ".pip/pip.conf", Path("/etc/pip.conf"))
    for place in places:
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string(read_text(place))
        except ConfigError:
            continue
        if parser.has_option("global", key):
            return parser.get("global", key)
    return None


def _npm() -> str:
    """Return the user's registry of Node packages."""
    found = re.search(r"(?m)^registry\s*=\s*(\S+)", read_text(Path.home() / ".npmrc"))
    configured = os.environ.get("npm_config_registry")  # noqa: SIM112 - as npm names it
    named = configured or (found[1] if found else None)
    return (named or "https://registry.npmjs.org").rstrip("/")
