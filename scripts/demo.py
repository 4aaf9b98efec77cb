"""Show what a model is sent and answered about sample_kb, in real rounds of `llm`.

The model is `echo`: it makes the tool calls it is told to make and says what it was
sent, and costs nothing. MODEL in the environment names a real one, which is asked the
same question with the user's own keys.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from json import JSONDecoder
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).resolve().parent.parent / "sample_kb"

QUESTION = "How do we review code here, and who decides?"

CALLS: list[dict[str, object]] = [
    {"name": "learn", "arguments": {"topic": "project"}},
    {
        "name": "learn",
        "arguments": {"topic": "project", "subjects": ["code-quality", "maintainers/core"]},
    },
]


def main() -> int:
    """Run the demo; return the exit code."""
    model = os.environ.get("MODEL")
    if model:
        return ask(model)
    with tempfile.TemporaryDirectory() as user_dir:
        os.environ["LLM_USER_PATH"] = user_dir  # logs of the demo stay out of the user's own
        say("What is there: llm kb list")
        print(run_llm("kb", "list"), end="")
        show_learning()
        show_preloading()
    say("Ask a real model: make demo MODEL=gpt-4o-mini (or any other that llm knows)")
    return 0


def ask(model: str) -> int:
    """Ask a real model, which decides by itself what to read."""
    say(f"llm -m {model} -T learn --tools-debug {QUESTION!r}")
    command = ["-m", model, "-T", "learn", "--tools-debug", QUESTION]
    return subprocess.run([find_llm(), *command], cwd=SAMPLE, check=False).returncode


def show_learning() -> None:
    """Let the model list a topic and load two subjects of it."""
    asked = json.dumps({"prompt": QUESTION, "tool_calls": CALLS})
    answers = read_answers(run_llm("-m", "echo", "-T", "learn", "--no-stream", asked))
    say("llm -T learn: the model was sent this system prompt")
    print(answers[0]["system"])
    say("and this question")
    print(answers[0]["prompt"])
    for call, result in zip(CALLS, answers[1]["tool_results"], strict=True):
        say(f"It called {call['name']}({json.dumps(call['arguments'])}) and was answered")
        print(result["output"])


def show_preloading() -> None:
    """Put one subject in front of the model, without a tool."""
    answers = read_answers(
        run_llm("-m", "echo", "-k", "project/maintainers/releases", "--no-stream", QUESTION)
    )
    say("llm -k project/maintainers/releases: the model was sent this system prompt")
    print(answers[0]["system"])


def read_answers(output: str) -> list[dict[str, Any]]:
    """Split what `echo` printed into one object for each request it was sent."""
    answers = []
    while output := output.strip():
        answer, end = JSONDecoder().raw_decode(output)
        answers.append(answer)
        output = output[end:]
    return answers


def run_llm(*arguments: str) -> str:
    """Run `llm` in sample_kb and return what it printed."""
    done = subprocess.run(
        [find_llm(), *arguments], cwd=SAMPLE, stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    return done.stdout


def find_llm() -> str:
    """Return the `llm` of the environment this script runs in."""
    return str(Path(sys.executable).with_name("llm"))


def say(heading: str) -> None:
    """Print a heading, bold on a terminal."""
    before, after = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("## ", "")
    print(f"\n{before}{heading}{after}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
