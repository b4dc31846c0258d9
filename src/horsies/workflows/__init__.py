"""Workflows: DAGs of tasks. Specs and their checks are pure; advancing happens in the database."""
