"""A package: its fixtures of this scope, a browser and admin servers, live while its tests run."""
