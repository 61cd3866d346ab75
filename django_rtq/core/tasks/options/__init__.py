"""The options of a task: how they are checked, and what is made of them."""
