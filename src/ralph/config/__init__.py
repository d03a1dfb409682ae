"""Settings: schema, layers with their origins, trust."""
