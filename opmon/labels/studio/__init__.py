"""Label Studio's forms: its tasks, its labelling configuration, its annotations."""
