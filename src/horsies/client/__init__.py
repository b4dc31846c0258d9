"""Sending tasks and awaiting their results."""
