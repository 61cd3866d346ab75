"""For code that was written for another queue, and cannot be edited: apps from the package index."""
