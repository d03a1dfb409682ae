"""Settings: their schema, their sources and origins, and which commands need trust."""
