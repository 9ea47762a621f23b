"""opmon's labelling tasks in Label Studio."""
