"""Run a call somewhere: in the event loop, in a thread, in a child process.

Executors know nothing of the database; a call goes in, an outcome comes back on the loop.
"""
