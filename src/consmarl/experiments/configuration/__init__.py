"""What a run is to do: its settings, their defaults and checks, and the parts that are built from them."""
