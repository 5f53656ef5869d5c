"""Where packets come from: capture files, packed or piped, and interfaces."""
