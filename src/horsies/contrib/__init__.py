"""Horsies inside other frameworks, one folder each; nothing of ours imports them."""
