"""Jobs that remember: steps whose results later runs get, sleep, and events."""
