"""How a verdict becomes rows: findings, topics, clients, clusters, coverage."""
