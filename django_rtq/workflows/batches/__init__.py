"""Tasks whose functions get many jobs in one call."""
