"""Pictures of environments' states."""

from consmarl.environments.draw.frame import Status, draw_frame

__all__ = ["Status", "draw_frame"]
