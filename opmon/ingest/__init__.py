"""The endpoint that takes what model servers send, and keeps it for the source ``ingest``."""
