"""Notification channels: desktop, webhook, command, and every service that Apprise supports."""
