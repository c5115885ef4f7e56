"""What the documents say is so: links lead somewhere."""
