"""Makes LLM tool calls sure."""
