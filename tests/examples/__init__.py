"""The scripts of examples/ do what they print, run as a user runs them."""
