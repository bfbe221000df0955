"""Plausible mistakes in the code, each with the tests that have to catch it."""

from typing import NamedTuple

SHARING, LEARNERS, TRAINING = "sharing", "learners", "training"


class Fault(NamedTuple):
    """One change that makes the code wrong."""

    file: str  # relative to the package
    old: str  # text that occurs exactly once in the file
    new: str
    tests: tuple[str, ...]  # relative to tests/

    @property
    def room(self) -> str:
        """The subpackage that contains the file."""
        return self.file.partition("/")[0]


EQUATIONS = ("sharing/test_equations.py", "sharing/test_targeted_exploration.py")
MECHANISM = ("sharing/test_oracle.py", "sharing/test_release.py", "training/test_sharing.py")
BRANCHES = ("sharing/test_branches.py",)
TARGETS = ("learners/test_targets.py",)
LOOP = ("training/test_loop.py", "training/test_replay.py", "training/test_exploration.py")

FAULTS = (
    Fault("sharing/equations.py", "return (1.0 + scale) ** -jnp.sqrt(", "return (1.0 + scale) ** -(", EQUATIONS),
    Fault("sharing/equations.py", "return teacher_visits > student_visits", "return teacher_visits >= student_visits",
          EQUATIONS),
    Fault("sharing/equations.py", "jnp.mean(jnp.max(values, axis=-1))", "jnp.max(values)", BRANCHES),
    Fault("sharing/equations.py", "(messages.worst_probability < probability)",
          "(messages.worst_probability > probability)", EQUATIONS),
    Fault("sharing/equations.py", "is_best = draw_whether < confidence", "is_best = draw_whether > confidence",
          EQUATIONS),
    Fault("sharing/cons.py", "messages, 1 - negative, negative, self.update_rate",
          "messages, negative, 1 - negative, self.update_rate", MECHANISM),
    Fault("sharing/cons.py", "(only_allowed(modified.probability, allowed), self.temperature)",
          "(only_allowed(modified.probability, allowed))", MECHANISM),
    Fault("sharing/adhoc_td.py", "(draws.giving >= chance)", "(draws.giving < chance)", MECHANISM),
    Fault("sharing/mechanism.py", "situation.episode > self.start_episode", "situation.episode >= self.start_episode",
          MECHANISM),
    Fault("sharing/mechanism.py", "wants & (set_aside < requests_left[:, None])",
          "wants & (requests_left[:, None] > 0)", MECHANISM),
    Fault("sharing/requests.py", "jnp.repeat(of_students[:, None], num_experts, axis=1)",
          "jnp.zeros((len(of_students), num_experts), jnp.int32)", ("training/test_beside.py",)),
    Fault("sharing/counters.py", "goes_on = ~is_there & ~jnp.any(is_free, axis=1)", "goes_on = ~is_there & False",
          ("sharing/test_counters.py",)),
    Fault("sharing/codebook.py", "is_near | ((cells == closest) & ~is_new)", "is_near",
          ("sharing/test_never_met_twice.py",)),
    Fault("sharing/simhash.py", "nearness > -TOLERANCE", "nearness > 0", ("sharing/test_never_met_twice.py",)),
    Fault("learners/td.py", "is_final = is_last & terminated[None, :] if bootstrap_time_limit else is_last",
          "is_final = is_last & terminated[None, :]", (*TARGETS, "learners/test_iql.py")),
    Fault("learners/td.py", "return rewards_t + discount * continues_t * values_t",
          "return rewards_t + discount * values_t", (*TARGETS, "learners/test_iql.py")),
    Fault("learners/td.py", "optimism * (return_t > value)", "optimism * (return_t < value)", TARGETS),
    Fault("learners/td.py", "(predictions - targets) ** 2) / total_weight(mask, may_be_empty=may_be_empty)",
          "(predictions - targets) ** 2) / mask.size", ("learners/test_iql.py",)),
    Fault("learners/temporal_difference.py", "else td.chosen_values(values_t, best)", "else values_t.max(axis=-1)",
          (*TARGETS, "learners/test_iql.py", "learners/test_team_value.py")),
    Fault("learners/temporal_difference.py", "is_best.all(axis=-1)", "is_best.any(axis=-1)",
          ("learners/test_branches.py",)),
    Fault("learners/targets.py", "(num_updates > 0) & (num_updates % every_updates == 0)",
          "num_updates % every_updates == 0", ("learners/test_iql.py", "learners/test_ga_comm.py")),
    Fault("learners/seql.py", "self.others_weight / num_others", "self.others_weight", ("learners/test_seql.py",)),
    Fault("learners/i2q.py", "mask * weights, may_be_empty", "mask, may_be_empty", ("learners/test_i2q.py",)),
    Fault("learners/ga_comm.py", "errors = targets - values_tm1", "errors = values_tm1 - targets",
          ("learners/test_ga_comm.py",)),
    Fault("training/replay.py", "return jnp.minimum(state.num_added, self.capacity)", "return state.num_added", LOOP),
    Fault("training/replay.py", "slot = state.num_added % self.capacity",
          "slot = jnp.minimum(state.num_added, self.capacity - 1)", LOOP),
    Fault("training/learning.py", "jnp.minimum(num_before + number + 1, self.replay.capacity)",
          "jnp.minimum(num_before + num_new, self.replay.capacity)", LOOP),
    Fault("training/learning.py", "keys = jax.random.split(key, self.updates_per_episode)",
          "keys = jnp.repeat(key[None], self.updates_per_episode)", LOOP),
    Fault("training/learning.py", "num_stored * self.replay.episode_limit > self.warmup_steps",
          "num_stored > self.warmup_steps", LOOP),
    Fault("training/exploration.py", "num_left = jnp.where(begins, length - 1,", "num_left = jnp.where(begins, length,",
          LOOP),
    Fault("training/exploration.py", "(of_every_branch(as_one, what), what[:1], what[1:])",
          "(of_every_branch(as_one, what), what[1:], what[1:])",
          LOOP),
    Fault("training/rollout.py", "is_live = turn.is_live & ~outcomes.done", "is_live = ~outcomes.done", LOOP),
    Fault("training/rollout.py", "ends_by_task = turn.is_live & outcomes.terminated",
          "ends_by_task = turn.is_live & outcomes.done", LOOP),
    Fault("training/loop.py", "jax.random.fold_in(state.key, state.num_rounds)", "state.key", LOOP),
    Fault("training/checkpoints.py", "outdated = set(numbers(directory)[:-keep]) - {number}",
          "outdated = set(numbers(directory)[:keep]) - {number}", ("training/test_checkpoints.py",)),
    Fault("training/teaching.py", "self.learner.act(self.beside, of_experts, *situation)",
          "self.learner.act(self.beside, of_team, *situation)", ("training/test_beside.py",)),
    Fault("training/teaching.py", "remembered = place.memory_after if is_after else place.memory",
          "remembered = place.memory_after", ("training/test_teaching.py",)),
)  # fmt: skip
