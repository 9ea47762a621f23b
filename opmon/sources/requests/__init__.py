"""Logs of a model server's requests: each holds one input or several, as JSON or CSV, and what was answered."""
