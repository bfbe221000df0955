"""Sharing mechanisms by name, and the options that override a preset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from consmarl.errors import UsageError
from consmarl.options import OptionField, Options, check_options, joined, option_names
from consmarl.registry import Registry, check_record, home_of
from consmarl.sharing.adhoc_td import AdHocTD
from consmarl.sharing.asking import fitted_start
from consmarl.sharing.cons import Cons
from consmarl.sharing.counting import counting_options
from consmarl.sharing.interface import Sharing
from consmarl.sharing.mechanism import Mechanism
from consmarl.sharing.none import NoSharing
from consmarl.sharing.options import Preset

NOBODY = "none"  # the name for no sharing


@dataclass(frozen=True)
class SharingEntry:
    """A registered sharing mechanism."""

    summary: str
    mechanism: type[Sharing]

    @property
    def options(self) -> list[str]:
        """The names of its options."""
        return option_names(self.mechanism)

    def has(self, option: str) -> bool:
        """Return whether this is an option of the mechanism, or of a way to count if the mechanism counts."""
        return option in self.options or ("counting" in self.options and option in counting_options())

    def build(self, preset: Preset, **options: Any) -> Sharing:
        """Build the mechanism with the settings of a preset, overridden by options."""
        if issubclass(self.mechanism, Mechanism):
            return self.mechanism.preset(preset, **options)
        return self.mechanism(**options)


SHARINGS: Registry[SharingEntry] = Registry("sharing mechanism")


def register_sharing(name: str, mechanism: type[Sharing], summary: str = "") -> None:
    """Register a sharing mechanism under a name.

    `mechanism` is a frozen dataclass derived from `sharing.interface.Sharing`. Most derive from `Mechanism`, which
    handles counting, asking and budgets, or from `Cons`. Its fields become options `--share.NAME`, described by the
    strings below them. `PRESETS` of a `Mechanism` holds the values in which presets differ from the fields' defaults.
    """
    what = f"the sharing mechanism {name!r}"
    check_record(what, mechanism, Sharing)
    check_options(what, mechanism)
    joined({each: entry.mechanism for each, entry in SHARINGS.items() if each != name} | {name: mechanism})
    SHARINGS.add(name, SharingEntry(summary, mechanism), home_of(mechanism))


class ShareOptions(Options):
    """Options of sharing that override the preset."""

    group = "share"

    @classmethod
    def known(cls) -> Mapping[str, OptionField]:
        """Return the options of all sharing mechanisms and of all ways to count."""
        mechanisms = joined({name: entry.mechanism for name, entry in SHARINGS.items()})
        for name, option in counting_options().items():
            if name in mechanisms:
                raise UsageError(
                    f"both the way to count {option.owners[0]} and the sharing mechanism {mechanisms[name].owners[0]} "
                    f"have an option {name}: choose another name."
                )
        return mechanisms | counting_options()

    def start(self, kind: str, preset: Preset, episodes: int, usual: int | None = None) -> int | None:
        """Return the episode after which sharing starts; None if nobody shares or the mechanism has no such option.

        `usual` is the start in a long run, by default that of the mechanism with this preset.
        """
        if "start_episode" not in SHARINGS[kind].options:
            return None
        if self.start_episode is not None:
            return int(self.start_episode)
        if usual is None:
            built: Any = SHARINGS[kind].build(preset)
            usual = int(built.start_episode)
        return usual if preset is Preset.PAPER else fitted_start(usual, episodes)

    def mechanism(self, kind: str, preset: Preset) -> Sharing:
        """Build the mechanism; options of counting are ignored unless a way to count is set."""
        given, entry = self.given(), SHARINGS[kind]
        for name in given:
            if not entry.has(name):
                owners = self.known()[name].owners
                if kind == NOBODY:
                    raise UsageError(f"share.{name} is set, but nobody shares: choose --method {' or '.join(owners)}.")
                raise UsageError(f"share.{name} is an option of {' and '.join(owners)}, not of {kind}.")
        of_counting = {name: given.pop(name) for name in counting_options() if name in given}
        if of_counting and self.counting is not None:
            given["counting_options"] = tuple(sorted(of_counting.items()))
        return entry.build(preset, **given)


register_sharing(NOBODY, NoSharing, "nobody asks")
register_sharing("adhoc-td", AdHocTD, "teachers name their best action, and students follow the majority")
register_sharing("cons", Cons, "teachers name their best and worst actions, and students weigh both with caution")
