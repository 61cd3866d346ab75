"""One job, lists of jobs, dead letters, and why a job waits."""
