"""See knowledge being shared: recorded episodes as one HTML page that replays them."""
