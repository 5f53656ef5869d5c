"""Result tables: their columns, batches on any file system, compaction, reading back."""
