"""What a worker tells people and machines about its work."""
