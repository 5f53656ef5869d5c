"""The one Spark query: session, settings, operators around the steps, sinks."""
