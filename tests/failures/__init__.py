"""What goes wrong is said with the value found and those allowed, and nobody waits for ever."""
