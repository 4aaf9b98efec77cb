"""`llm kb knowledge setup`: let plain fetches and pushes carry entries; print recipes."""

from __future__ import annotations

import shlex

import click

from llm_kb.capture.sharing.remotes import add_settings, missing_settings
from llm_kb.capture.store import require_repository
from llm_kb.commands._config import require_cwd
from llm_kb.commands._output import confirm, say, show
from llm_kb.commands.knowledge.sync import remote_argument
from llm_kb.git import GitError
from llm_kb.rendering.plain_text import visible_line

RECIPES = {
    "post-commit": """\
#!/bin/sh
# Lets a model look at each commit you make, in the background.
# Look at it first; then save it as .git/hooks/post-commit and run chmod +x on it.
(llm kb knowledge capture HEAD >/dev/null 2>&1 &)
""",
    "pre-push": """\
#!/bin/sh
# Shares entries whenever you push commits to a remote.
# Look at it first; then save it as .git/hooks/pre-push and run chmod +x on it.
llm kb knowledge push "$1" || echo "knowledge was not pushed" >&2
""",
    "ci": """\
# Lets a model look at what is pushed to the main branch, and shares what it finds.
# Look at it first; then save it as .github/workflows/knowledge.yml.
name: knowledge
on:
  push:
    branches: [main]
permissions:
  contents: write
jobs:
  capture:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 100
      - run: pip install llm llm-kb
      - run: git config user.name knowledge && git config user.email knowledge@localhost
      - run: llm kb knowledge pull
      - run: llm kb knowledge capture "$BEFORE..$AFTER" --limit 20 --max-tokens 200000 -y
        env:
          BEFORE: ${{ github.event.before }}
          AFTER: ${{ github.sha }}
          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}
      - run: llm kb knowledge push
""",
}


@click.command()
@remote_argument
@click.option("--push", is_flag=True, help="Also let a plain `git push` push the entries")
@click.option(
    "--recipe",
    type=click.Choice(list(RECIPES)),
    help="Print a hook or a workflow to look at, and change nothing",
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask before the configuration is changed")
def setup(remote: str, push: bool, recipe: str | None, yes: bool) -> None:
    """
    Make plain fetches from REMOTE bring its entries

    They are kept beside yours until `llm kb knowledge pull` merges them; `list` and
    `learn` tell when there are some. The settings of git are shown and asked about.
    Nothing runs by itself: --recipe prints files that you can save where you want.

    \b
        llm kb knowledge setup
        llm kb knowledge setup --push
        llm kb knowledge setup --recipe post-commit
    """
    if recipe:
        show(RECIPES[recipe], nl=False)
        return
    here = require_cwd()
    require_repository(here)
    try:
        missing = missing_settings(here, remote, push=push)
    except GitError as error:
        raise click.ClickException(
            f"no remote is called {remote!r} here; `git remote -v` lists them"
        ) from error
    if not missing:
        say(f"{remote}: set up already.")
        return
    for key, value in missing:
        show(visible_line(f"git config --add {shlex.quote(key)} {shlex.quote(value)}"))
    confirm("Make this change to the repository's Git configuration?", yes=yes)
    add_settings(here, missing)
    say(f"{remote}: set up. `git fetch` and `llm kb knowledge pull` bring its entries.")
    say("With `shared = true` under [kb.capture] in llm-kb.toml, new clones are told to pull.")
