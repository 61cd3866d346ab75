"""The parent process: starts worker processes, renews their leases and recovers from their crashes."""
