"""What a task is: definition, registry, options, retry policy, discovery."""
