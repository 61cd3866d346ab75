"""What every job needs: settings, jobs, tasks, the broker, the scheduler and the worker. It knows no app."""
