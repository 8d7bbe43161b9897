"""The command line: one module per command; only click is loaded at start."""
