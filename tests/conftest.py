"""How Hypothesis runs: the same 200 examples in CI, 25 new ones on a desk."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, max_examples=200, deadline=None)
settings.register_profile("desk", max_examples=25, deadline=None)
settings.load_profile("ci" if os.environ.get("CI", "").lower() in {"1", "true"} else "desk")
