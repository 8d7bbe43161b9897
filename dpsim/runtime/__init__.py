"""Where it runs: shards, aggregator, coordinator. Ray appears in ``ray_*.py`` only."""
