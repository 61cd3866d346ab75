"""rtq_worker and rtq_scheduler, and what all commands share."""
