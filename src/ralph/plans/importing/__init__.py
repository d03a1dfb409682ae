"""Import work written for other tools: one module per kind of source."""
