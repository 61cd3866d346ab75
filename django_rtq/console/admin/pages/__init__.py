"""The pages of the admin."""
