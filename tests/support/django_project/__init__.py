"""The Django project of the tests in tests/django."""
