"""Requests that opmon sends: their addresses, and connections with a deadline."""
