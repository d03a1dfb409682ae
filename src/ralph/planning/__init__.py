"""From an idea to a plan: an agent reads the code, asks the user, and answers in a form that is checked."""
