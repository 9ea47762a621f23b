"""Executors, which run the jobs of a round: in this process, or wherever a plugin takes them."""
