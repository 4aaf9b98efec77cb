"""Print the lowest version pyproject.toml allows of every dependency, as constraints of pip."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?>=(?P<lowest>[\w.]+)(?P<marker>;.*)?")


def iter_lowest() -> Iterator[str]:
    """Yield one `name==version` for each dependency of the package and its extras."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    for requirement in (*project["dependencies"], *(each for extra in extras for each in extra)):
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise SystemExit(f"{PYPROJECT}: {requirement!r} has to be like 'name[extra]>=version'")
        yield f"{match['name']}=={match['lowest']}{match['marker'] or ''}"


if __name__ == "__main__":
    print("\n".join(iter_lowest()))
