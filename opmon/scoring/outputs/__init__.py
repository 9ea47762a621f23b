"""The meaning of a model's outputs: which is the score, and the predictions and variables that follow."""
