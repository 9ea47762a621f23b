"""References: what is fitted on a model's training data, and the fitting."""
