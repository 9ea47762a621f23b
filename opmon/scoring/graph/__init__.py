"""The monitor graph: a model's own ONNX graph with its auxiliary variables computed beside its outputs."""
