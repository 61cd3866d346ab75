"""The queue in Redis: enqueue, claim, settle, reclaim and schedule jobs."""
