"""The networks of gluon_models/ are those of the papers, and train through every store."""
