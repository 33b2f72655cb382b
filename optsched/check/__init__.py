"""The referee: reads schedules and certificates again, by the definitions, and names every rule that one of them breaks."""
