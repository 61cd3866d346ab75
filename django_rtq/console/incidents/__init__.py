"""What is wrong, since when, and what ends it: the same for the admin, commands, health checks, metrics and signals."""

from django_rtq.console.incidents.detection import find_incidents, look
from django_rtq.console.incidents.incident import Action, Incident, Seen, Severity, worst_of

__all__ = [
    "Action",
    "Incident",
    "Seen",
    "Severity",
    "find_incidents",
    "look",
    "worst_of",
]
