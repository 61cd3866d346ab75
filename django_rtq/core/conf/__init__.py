"""The setting RTQ: what it may say, and the Config that it is read into."""
