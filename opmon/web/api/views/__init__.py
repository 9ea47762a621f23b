"""What the API tells of monitors, rounds, events and plans, with quantities in words."""
