"""The conversation: who asks whom for what, at what price. No Ray, no threads."""
