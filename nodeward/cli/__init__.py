"""The command line: the only room that reads flags, files and the environment, and wires real things together."""
