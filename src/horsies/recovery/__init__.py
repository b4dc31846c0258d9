"""After a death: stale claims, lost runs and dead workers are found and settled here."""
