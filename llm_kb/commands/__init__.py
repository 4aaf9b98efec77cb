"""The subcommands of `llm kb`, one file per command or small family."""
