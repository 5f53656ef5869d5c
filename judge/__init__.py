"""Claims in, verdicts out: the ledger, the clusters, the checks and their catalogue. Plain Python, no Spark."""
