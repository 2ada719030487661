"""Random requests from our own OpenAPI documents: whatever is sent, the answer is an answer."""
