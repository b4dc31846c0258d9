"""The engine's schema as migrations of Django."""
