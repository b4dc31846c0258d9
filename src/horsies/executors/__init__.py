"""Run a call in the event loop, in a thread or in a child process.

Executors do not know the database: they take a call and report its outcome on the event loop.
"""
