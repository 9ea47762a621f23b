"""What is fitted on a model's training data, and how."""
