"""Where the jobs of a round run: in this process, or wherever a plugin takes them."""
