"""Scripts that hold something back until they have seen what overlap makes possible."""
