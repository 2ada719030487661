"""The node agent: one core for simulated, process and container nodes, alone or by the thousand."""
