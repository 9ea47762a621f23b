"""What a model's outputs mean: which is the score, and what predictions and variables follow."""
