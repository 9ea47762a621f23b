"""The source ``sql``, the one place that reads tables of somebody else's."""
