"""From the notation of layouts to the programs that the interpreter walks."""
