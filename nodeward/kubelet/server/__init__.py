"""What a kubelet serves to the API server: logs, commands in containers, ports of pods, and its own pages."""
