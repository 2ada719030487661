"""An HTTP/1.1 server for components: the API server itself, and the health and metrics pages of the others."""
