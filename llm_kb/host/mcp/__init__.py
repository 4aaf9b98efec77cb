"""The knowledge base as an MCP server, for clients other than llm."""
