"""A run's configuration: its settings, their defaults and checks, and the parts built from them."""
