"""Jobs on this machine train: with the bits of one process, of MXNet's store or of a reference."""
