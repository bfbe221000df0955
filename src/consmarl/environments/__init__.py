"""The environments: pure functions of (key, state, actions)."""
