"""The steps of the job as plain functions, and the plain loop over them: no Spark in here."""
