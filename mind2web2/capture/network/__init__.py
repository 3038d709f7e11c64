"""Network access of captures: filtering proxy, destinations, name lookup."""
