"""Private item-based collaborative filtering: numpy and numba only, no Ray."""
