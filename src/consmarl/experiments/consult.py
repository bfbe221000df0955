"""Let the agents of a learned policy consult each other, and describe how they do."""

from consmarl.errors import UsageError
from consmarl.experiments.configuration.config import AnyTrainer, TrainConfig
from consmarl.experiments.configuration.methods import METHODS
from consmarl.records import typed
from consmarl.sharing.consulting import Consulting
from consmarl.sharing.interface import Sharing
from consmarl.sharing.none import ALONE
from consmarl.sharing.options import Consult

EXECUTION = {  # how agents act, for messages
    None: "each on its own",
    Consult.MEAN: "consulting the team, by the mean of all values",
    Consult.VOTE: "consulting the team, by majority",
    Consult.BEST: "consulting the team, by the values of the agent that expects most",
    Consult.CONS: "consulting the team, by CONS's absorption of advice from agents that expect more",
}


def consulting(consult: Consult | str | None, config: TrainConfig, trainer: AnyTrainer) -> Sharing:
    """Return the sharing mechanism for executing a policy; `consult` is a mode, its name, or None for no sharing."""
    if consult is None:
        return ALONE
    mode = typed("consult", Consult, consult)
    if not config.entry.is_value_based:
        with_values = ", ".join(method for method, entry in METHODS.items() if entry.is_value_based)
        raise UsageError(
            f"{config.method} learns a policy, but agents consult each other on values: use --consult with "
            f"{with_values}."
        )
    sharing = Consulting(mode)
    sharing.init(trainer.world.num_agents, trainer.world.num_actions)  # raises an error for a team of one
    return sharing
