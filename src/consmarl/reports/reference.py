"""Results of the weights that the paper's authors released, for comparison with ours.

They were recorded by playing the published weights greedily in the authors' own environments. Each set of weights was
recorded twice with different random numbers: the errors are over episodes of one set of weights, not over seeds.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from consmarl.reports.runs import Group, flat_settings


class Recorded(NamedTuple):
    """A recorded mean team return."""

    estimate: float
    error: float | None = None  # standard error over episodes, if it was recorded


class Landmark(NamedTuple):
    """A reference return, such as that of random play, which shows what is achievable."""

    name: str
    recorded: Recorded


WHAT_IT_IS = "authors' released weights, recorded in their environments"

RELEASED: Mapping[str, Mapping[str, tuple[Recorded, ...]]] = MappingProxyType(
    {
        "pgm-6ag": {
            "CONS": (Recorded(19.7, 1.2), Recorded(20.7, 0.8)),
            "AdHocTD": (Recorded(-4.7, 0.8), Recorded(-5.5, 0.6)),
            "IQL": (Recorded(-14.5, 0.8), Recorded(-13.0, 0.6)),
            "GA-Comm": (Recorded(-40.2),),
        },
        "pgm-3ag": {
            "CONS": (Recorded(14.1, 0.6), Recorded(12.6, 0.5)),
            "AdHocTD": (Recorded(7.1, 0.4), Recorded(5.3, 0.3)),
            "IQL": (Recorded(1.0, 0.3), Recorded(0.3, 0.2)),
            "GA-Comm": (Recorded(-7.8),),
        },
        "ft": {
            "CONS": (Recorded(2.9, 0.4), Recorded(2.6, 0.4)),
            "AdHocTD": (Recorded(1.9, 0.4), Recorded(2.1, 0.4)),
            "IQL": (Recorded(1.3, 0.4), Recorded(1.9, 0.4)),
            "MAVEN": (Recorded(-1.4),),
        },
        "cleanup": {"CONS": (Recorded(74.6, 1.7), Recorded(76.2, 1.4))},
    }
)

LANDMARKS: Mapping[str, tuple[Landmark, ...]] = MappingProxyType(
    {
        "pgm-6ag": (Landmark("random play", Recorded(-61.8)), Landmark("an omniscient planner", Recorded(202.0))),
        "pgm-3ag": (Landmark("random play", Recorded(-15.5)), Landmark("an omniscient planner", Recorded(27.9))),
        "ft": (
            Landmark("random play", Recorded(-2.0)),
            # the treasure and three coins, no empty red box opened, 50 steps: 15 − 2 + 3 · (2 − 1) − 2
            Landmark("a team that knows what every box holds", Recorded(14.0)),
        ),
        "cleanup": (
            Landmark("random play", Recorded(0.7)),
            Landmark("a scripted team that sees everything, two cleaning and two collecting", Recorded(109.0, 5.0)),
        ),
    }
)


def released_for(group: Group) -> tuple[Recorded, ...]:
    """Return the authors' results for the group's method; empty if the environment or method was changed."""
    run = group.runs[0]
    if run.world not in RELEASED or not _is_the_method_itself(group):
        return ()
    return RELEASED[run.world].get(run.method, ())


def landmarks_for(world: str, methods_shown: set[str]) -> list[Landmark]:
    """Return reference returns for an environment with its usual parameters: other released methods, and landmarks."""
    others = [
        Landmark(f"{method} (released weights)", recorded)
        for method, records in RELEASED.get(world, {}).items()
        if method not in methods_shown
        for recorded in records
    ]
    return [*others, *LANDMARKS.get(world, ())]


def _is_the_method_itself(group: Group) -> bool:
    """Return whether no option of the method was changed, except start and budget, which scale with the run."""
    run = group.runs[0]
    options = {name for name, value in flat_settings(run.config).items() if "." in name and value is not None}
    set_here = options - run.by_default
    return set_here <= {"share.start_episode", "share.budget_requests"} and run.facts.get("label") in (None, run.method)
