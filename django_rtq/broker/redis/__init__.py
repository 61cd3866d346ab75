"""Only its hooks are public: the connections are in the core."""
