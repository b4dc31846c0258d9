"""DAGs of tasks: what a workflow is, whether it is valid, and how it runs to its end."""
