"""What a capture may connect to: filtering proxy, destinations, name lookup."""
