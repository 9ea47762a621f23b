"""Boosted trees as an ONNX graph, from the file that their library wrote: it is data, and nothing in it is run."""
