"""Judges: who answers before people do. Their answers assist the estimate, and are no labels."""
