"""Only its hooks are public: the broker is in the core."""
