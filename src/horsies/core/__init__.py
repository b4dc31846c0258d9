"""This package only re-exports names; it contains no code of its own.

It keeps the import paths that docs/contract/README.md §4 promises. The rest of horsies never
imports it.
"""
