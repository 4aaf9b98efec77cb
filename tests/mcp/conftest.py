"""Fixtures: a repository to fetch, and a user whose settings allow it."""

from tests.host.conftest import remote as remote
from tests.host.conftest import trusting as trusting
