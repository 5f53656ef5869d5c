"""Who is who: endpoints in clusters, brokers behind endpoints, ids behind names."""
