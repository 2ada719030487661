"""Readiness rules (`NodeReadinessRule`): nodes carry a taint until they report what a rule asks for."""
