#!/bin/sh
# What a model sees of sample_kb: the section it is sent and two calls of `learn`.
# The model is `echo`, which does as it is told and costs nothing; MODEL names a real one.
set -eu
cd "$(dirname "$0")/../sample_kb"

question='How do we review code here, and who decides?'

say() { printf '\n\033[1m%s\033[0m\n\n' "$*"; }
[ -t 1 ] || say() { printf '\n## %s\n\n' "$*"; }

if [ -n "${MODEL:-}" ]; then
    say "llm -m $MODEL -T learn '$question'"
    exec llm -m "$MODEL" -T learn --tools-debug "$question"
fi

# Logs and settings of this demo stay out of the user's own.
LLM_USER_PATH=$(mktemp -d)
export LLM_USER_PATH
trap 'rm -rf "$LLM_USER_PATH"' EXIT

say 'The knowledge base: llm kb list'
llm kb list

say "What 'llm -T learn' adds to the system prompt: llm kb prompt"
llm kb prompt

say 'The model lists a topic, then loads what it needs (echo, scripted; tool calls are real)'
llm -m echo -T learn --tools-debug --no-stream '{
  "prompt": "How do we review code here, and who decides?",
  "tool_calls": [
    {"name": "learn", "arguments": {"topic": "project"}},
    {"name": "learn", "arguments": {"topic": "project", "subjects": ["code-quality", "maintainers/*"]}}
  ]
}' >"$LLM_USER_PATH/answer.json"

say 'The same knowledge without a tool: llm kb prompt -k project/code-quality'
llm kb prompt -k project/code-quality

say 'Ask a real model the same: make demo MODEL=gpt-4o-mini (or any model of llm)'
