"""The studies, one per figure of the paper: which runs each needs, and how it is drawn.

Numbers of episodes and seeds are from the authors' README and the paper [P, C]; neither gives any for FT-20 and
FT-multi, so these use the numbers of FT. Seeds start at 10, the default in the authors' code.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from consmarl.environments.registry import make
from consmarl.errors import UsageError, nearest
from consmarl.experiments.configuration.config import TrainConfig
from consmarl.experiments.sweeps.plan import Sweep, Variant, fitting
from consmarl.sharing.options import Preset

FIRST_SEED = 10
EPISODES_IN_STEPS_OF = 40  # so that the episodes of a shortened run divide evenly into rounds and rows


class Plot(enum.Enum):
    """The kind of a figure: learning curves, requests used, items, or weights of negative knowledge."""

    CURVE = "curve"
    BUDGET = "budget"
    ITEMS = "items"
    WEIGHTS = "weights"


IQL = Variant("iql", {"method": "iql"}, "IQL")
ADHOC_TD = Variant("adhoc-td", {"method": "adhoc-td"}, "AdHocTD")
CONS = Variant("cons", {"method": "cons"}, "CONS")
WITHOUT_NEGATIVE = Variant("cons-wo-n", {"method": "cons", "share.knowledge": "positive-only"}, "CONS wo-N")
WITHOUT_POSITIVE = Variant("cons-wo-p", {"method": "cons", "share.knowledge": "negative-only"}, "CONS wo-P")
WITHOUT_TARGETED = Variant("cons-wo-te", {"method": "cons", "share.sampling": "plain"}, "CONS wo-TE")
I2Q = Variant("i2q", {"method": "i2q"}, "I2Q")
SEQL = Variant("seql", {"method": "seql"}, "SEQL")
GA_COMM = Variant("ga-comm", {"method": "ga-comm"}, "GA-Comm")
MAVEN = Variant("maven", {"method": "maven"}, "MAVEN")
COMPARED = (CONS, I2Q, SEQL, GA_COMM, ADHOC_TD, IQL)


@dataclass(frozen=True)
class Study:
    """A figure of the paper and the runs that it needs."""

    name: str
    figure: int
    title: str
    claim: str  # the paper's claim, in our words
    env: str | None = None
    variants: tuple[Variant, ...] = ()
    episodes: int = 0
    num_seeds: int = 0
    plot: Plot = Plot.CURVE
    metric: str = "evaluation_return"

    def sweep(self, scale: float = 1.0, options: Mapping[str, Any] | None = None) -> Sweep:
        """Return the study's runs as a sweep, shortened by `scale`, optionally with other settings."""
        if self.env is None:
            raise UsageError(f"the study {self.name} needs no runs: `consmarl report --study {self.name}` draws it.")
        check_scale(scale)
        base = TrainConfig(env=self.env, episodes=self.episodes, preset=Preset.PAPER)
        variants = tuple(_shortened(base, _with(variant, options or {}), scale) for variant in self.variants)
        return Sweep((self.env,), variants, tuple(range(FIRST_SEED, FIRST_SEED + self.num_seeds)), base)

    def description(self, scale: float = 1.0) -> dict[str, Any]:
        """Return the facts that a report needs, as plain JSON."""
        command = f"consmarl sweep --study {self.name}" + ("" if scale == 1 else f" --scale {scale:g}")
        return {
            "name": self.name, "title": self.title, "figure": self.figure, "plot": self.plot.value,
            "metric": self.metric, "worlds": [self.env] if self.env else [],
            "groups": [variant.label for variant in self.variants], "episodes": self.episodes,
            "seeds": self.num_seeds, "scale": scale, "claim": self.claim,
            "command": command if self.env else None,
        }  # fmt: skip


def check_scale(scale: float) -> None:
    """Raise an error unless a scale is above 0 and at most 1."""
    if not 0 < scale <= 1:
        raise UsageError(f"scale must be above 0 and at most 1, such as 0.1, not {scale}.")


def _with(variant: Variant, options: Mapping[str, Any]) -> Variant:
    """Return a variant with additional options, if its method has them; its own options take precedence."""
    return Variant(variant.name, fitting(variant.options["method"], options) | dict(variant.options), variant.label)


def _shortened(base: TrainConfig, variant: Variant, scale: float) -> Variant:
    """Return a variant with all settings that are counted in episodes, steps or requests multiplied by `scale`."""
    config = base.with_options(variant.options)
    options = dict(variant.options)
    if scale != 1:
        chunks = max(round(config.episodes * scale / EPISODES_IN_STEPS_OF), 1)
        options |= {
            "episodes": chunks * EPISODES_IN_STEPS_OF,
            "epsilon_anneal_steps": max(round(config.epsilon(make(config.env).episode_limit).anneal_steps * scale), 1),
        }
        if config.shares_knowledge:
            mechanism: Any = config.mechanism
            options |= {
                "share.start_episode": round(mechanism.start_episode * scale),
                "share.budget_requests": max(round(mechanism.budget_requests * scale), 1),
            }
    return Variant(variant.name, options, variant.label)


_ALL: dict[str, Any] = dict(variants=COMPARED)
_TEACHERS: dict[str, Any] = dict(variants=(CONS, ADHOC_TD), plot=Plot.BUDGET, metric="budget_used")
_PGM_6AG: dict[str, Any] = dict(env="pgm-6ag", episodes=80_000, num_seeds=5)
_PGM_3AG: dict[str, Any] = dict(env="pgm-3ag", episodes=100_000, num_seeds=5)
_FT: dict[str, Any] = dict(env="ft", episodes=50_000, num_seeds=4)
_CLEANUP: dict[str, Any] = dict(env="cleanup", episodes=80_000, num_seeds=3)

_STUDIES: tuple[Study, ...] = (
    Study("pgm-6ag", 1, "Patient Gold Miner with six agents",
          "CONS learns best, and reaches the level of AdHocTD and IQL in half the episodes.", **_PGM_6AG, **_ALL),
    Study("pgm-3ag", 2, "Patient Gold Miner with three agents",
          "CONS leads by more than with six agents, and every baseline does relatively worse.", **_PGM_3AG, **_ALL),
    Study("pgm-6ag-budget", 3, "Requests with six gold miners", "CONS uses 30.1 % of the requests that AdHocTD uses.",
          **_PGM_6AG, **_TEACHERS),
    Study("pgm-3ag-budget", 4, "Requests with three gold miners", "CONS uses 33.5 % of the requests that AdHocTD uses.",
          **_PGM_3AG, **_TEACHERS),
    Study("ft", 5, "Find the Treasure",
          "CONS is ahead of AdHocTD and IQL, MAVEN behind them; I2Q, SEQL and GA-Comm fail.",
          **_FT, variants=(*COMPARED, MAVEN)),
    Study("ft-items", 6, "Boxes and items in Find the Treasure",
          "CONS best balances opening red boxes, to find the treasure, and yellow ones, for their coins.",
          **_FT, variants=(CONS, GA_COMM, ADHOC_TD, IQL, MAVEN), plot=Plot.ITEMS, metric="items"),
    Study("cleanup", 7, "Cleanup",
          "IQL and AdHocTD dip midway, I2Q is faster early, CONS ends above it; GA-Comm and SEQL fail.",
          **_CLEANUP, **_ALL),
    Study("cleanup-budget", 8, "Requests in Cleanup", "CONS uses 8 % of the requests that AdHocTD uses.",
          **_CLEANUP, **_TEACHERS),
    Study("ablation", 9, "CONS without its parts, training return",
          "CONS > wo-P > wo-N; wo-TE is like AdHocTD at first and clearly above it later.", **_PGM_6AG,
          variants=(CONS, WITHOUT_NEGATIVE, WITHOUT_POSITIVE, WITHOUT_TARGETED, ADHOC_TD), metric="return"),
    Study("weights", 10, "Weight of negative knowledge, h(x)",
          "Negative knowledge counts most at first and less over time; the shape a sets how quickly.",
          plot=Plot.WEIGHTS, metric="weight"),
    Study("ft-20", 11, "Find the Treasure with twenty agents", "CONS is best.", env="ft-20", episodes=50_000,
          num_seeds=4, variants=(CONS, I2Q, ADHOC_TD)),
    Study("ft-multi", 12, "Find the Treasure with a second optimum", "CONS is ahead of the others.",
          env="ft-multi", episodes=50_000, num_seeds=4, **_ALL),
)  # fmt: skip
STUDIES = {study.name: study for study in _STUDIES}


def find_study(name: str) -> Study:
    """Return a study by name; the error for an unknown name suggests the closest ones."""
    if name not in STUDIES:
        raise UsageError(f"there is no study {name!r}: {nearest(name, STUDIES)}")
    return STUDIES[name]
