"""How good it was: sees the truth, feeds nothing back."""
