"""What people look at and act on: one sheet for each subject."""
