"""The viewer: one HTML page that replays recorded episodes and shows how agents share knowledge."""
