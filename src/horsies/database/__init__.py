"""Everything that knows PostgreSQL: connections, statements, migrations, notifications."""
