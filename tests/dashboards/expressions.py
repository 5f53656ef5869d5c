"""A panel's expression as Prometheus takes it: what Grafana puts in place of its variables."""


def plain(expr, interval="5m", reach="6h"):
    chosen = dict.fromkeys(("$cluster", "$agent", "$api"), ".*")
    for name, value in ({"$__rate_interval": interval, "$__range": reach} | chosen).items():
        expr = expr.replace(name, value)
    return expr
