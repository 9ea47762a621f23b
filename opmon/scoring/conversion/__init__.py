"""A model of another library as an ONNX graph that answers as the original does."""
