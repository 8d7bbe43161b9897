"""MWEM: a private histogram from a workload of linear queries, in the central model."""
