"""The command line: the only package that reads flags, files and the environment, and wires components together."""
