"""Tests of tools/launch.py: real jobs, started the way a user starts them."""
