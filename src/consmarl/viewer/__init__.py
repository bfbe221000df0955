"""The viewer: recorded episodes as one HTML page that replays them and shows how knowledge is shared."""
