"""The integration with `llm`: options, tools, loaders, the MCP server and the terminal."""
