"""Ways to tell a person who is not watching: desktop, webhook, command, and what Apprise reaches."""
