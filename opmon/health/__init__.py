"""What programs are told of a process of opmon: metrics for Prometheus, and probes for whatever keeps it running."""
