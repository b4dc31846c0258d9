"""A user's app."""
