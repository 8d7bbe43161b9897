"""Questions and their recorded answers: specifications, runs, run directories."""
