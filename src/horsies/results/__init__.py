"""From a row to its value: the handle, waiting for the end, the task as it stands."""
