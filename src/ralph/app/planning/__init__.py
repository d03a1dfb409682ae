"""From an idea to a plan: an agent reads the code, asks a person, and answers in a form that is checked."""
