"""Randomizers and their estimators: one family per file, numpy only."""
