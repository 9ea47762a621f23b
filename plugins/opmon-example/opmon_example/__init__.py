"""One small plugin of every kind that opmon takes. Copy the file of the kind you need."""
