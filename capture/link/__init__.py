"""What stands in front of a TCP payload: link types, tags, tunnels, IP and TCP headers."""
