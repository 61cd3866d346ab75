"""Jobs and database transactions."""
