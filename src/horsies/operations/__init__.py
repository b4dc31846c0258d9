"""Steer tasks that are stored: cancel, requeue, rerun, and ask who is alive."""
