"""Migrations of the tests app."""
