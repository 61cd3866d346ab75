"""Actions on many jobs: their pages, and what they do."""
