"""What pages show of single jobs."""
