"""What a client calls around its tool calls. Of Ralph it imports only `guard` and `results`, of Python little."""
