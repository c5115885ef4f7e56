"""What benchmarks/ simulate has the bits of a job, and their tables say what was found."""
