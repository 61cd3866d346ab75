"""What jobs took and how they ended, as it lies in Redis."""
