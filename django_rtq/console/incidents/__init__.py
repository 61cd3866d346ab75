"""What is wrong, since when, and what ends it: the same for the admin, commands, health checks, metrics and signals."""

from django_rtq.console.incidents.detection import find_incidents, read_incidents
from django_rtq.console.incidents.incident import Action, Incident, Severity

__all__ = ["Action", "Incident", "Severity", "find_incidents", "read_incidents"]
