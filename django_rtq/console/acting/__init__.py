"""What people can do with subjects, with all words beside it."""
