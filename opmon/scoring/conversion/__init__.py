"""A scikit-learn model as an ONNX graph that answers as the original does."""
