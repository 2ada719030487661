"""What a hostile or broken peer can do to an API server over a real socket: nothing worse than an answer."""
