"""What surecall keeps for the sake of the experiment it grew out of: its names and its settings."""
