"""Truth that arrives by itself: read from a source or from the log, and kept until the rounds need it."""
