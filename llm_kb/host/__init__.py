"""The integration with `llm`: options, tools, loaders, and the MCP server."""
