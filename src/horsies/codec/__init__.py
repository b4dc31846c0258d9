"""Python values <-> JSON text, driven by annotations; tags only where an annotation cannot tell."""
