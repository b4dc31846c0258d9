"""What the command line and the terminal UI draw alike: states, tasks in words, graphs."""
