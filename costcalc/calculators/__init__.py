"""Folds over an inventory: each answers one question."""
