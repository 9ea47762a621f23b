"""The way from rows of the production log to the tensors that a model takes."""
