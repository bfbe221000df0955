"""The worlds: pure functions of (key, state, actions)."""
