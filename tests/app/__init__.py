"""The tasks of the tests: imported by them and by the workers that they start."""
