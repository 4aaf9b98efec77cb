"""The side of `llm`: options, tools, loaders, the MCP server and the terminal."""
