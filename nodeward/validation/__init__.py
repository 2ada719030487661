"""What may be stored: the rules of every kind, in folders by API group. `registry.VALIDATORS` is the way in."""
