"""Typed background tasks on nothing but PostgreSQL."""
