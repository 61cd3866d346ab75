"""What people see of queues, jobs and workers, and what they do with them. The worker never imports it."""
