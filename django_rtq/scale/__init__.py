"""More than one Redis server: shards, Clusters, and masters behind Sentinels."""
