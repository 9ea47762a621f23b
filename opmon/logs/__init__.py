"""How opmon's log reads: on a terminal, for programs, and where the same is said over and over."""
