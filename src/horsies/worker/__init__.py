"""The worker process: claims tasks, runs them in executors, records how they ended."""
