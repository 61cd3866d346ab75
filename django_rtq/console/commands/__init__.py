"""The commands with which people look at jobs and act on them."""
