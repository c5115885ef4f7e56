"""Tests of the launcher: real jobs, started the way a user starts them."""
