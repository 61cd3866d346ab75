"""What people see of several shards: lists that are merged, actions that are done in each."""
