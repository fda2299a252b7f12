"""Questions about days and trials, and their answers."""
