"""Convert Python values to JSON text and back by annotation; tag what annotations leave open."""
