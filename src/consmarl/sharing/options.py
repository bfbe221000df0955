"""Options for points that the paper leaves open, or on which the paper and the authors' code disagree."""

import enum


class AskGate(enum.Enum):
    """When an agent may consider asking."""

    ALWAYS = "always"  # the paper, Algorithm 3
    EXPLORING = "exploring"  # the authors' code: only in the ε branch
    STARTING_TO_EXPLORE = "starting-to-explore"  # as EXPLORING, but not in the middle of a run of repeated actions
    EXPLOITING = "exploiting"  # only when it would act greedily, so that advice never replaces exploration


class AskWhen(enum.Enum):
    """In which steps of an episode an agent may ask."""

    EVERY_STEP = "every-step"  # the paper
    FIRST_STEP = "first-step"  # what the authors' code does
    FIRST_VISIT = "first-visit"  # what the authors' code intends: on observations not yet met in this episode


class Knowledge(enum.Enum):
    """Which knowledge counts, and how its weights are determined."""

    SCHEDULE = "schedule"  # the paper, Eq. 8
    NEGATIVE_ONLY = "negative-only"  # CONS-wo-P; what the authors' code does
    POSITIVE_ONLY = "positive-only"  # CONS-wo-N
    FIXED = "fixed"  # `fixed_negative_weight`; the authors' code has a mode with a weight of one half


class Normalisation(enum.Enum):
    """Which teachers' weights add up to 1 (Eq. 10)."""

    ALL_NAMING = "all-naming"  # the paper: all that name the action, whether or not they pass the indicator
    PASSING = "passing"  # the authors' code: only those that pass the indicator


class Gained(enum.Enum):
    """When answers count as knowledge, so that the student follows them and pays."""

    PROBABILITY_CHANGED = "probability-changed"  # the paper, Algorithm 3
    TEACHER_PASSED = "teacher-passed"  # the authors' code: an indicator of Eq. 9 held, even with zero weight


class Sampling(enum.Enum):
    """How the student draws from its new policy."""

    TARGETED = "targeted"  # the paper, Algorithm 1
    PLAIN = "plain"  # CONS-wo-TE


class Eligibility(enum.Enum):
    """Which agents may teach, by the halves of Eq. 6."""

    ANYONE = "anyone"
    EITHER = "either"  # the paper's CONS: those that have met the observation more often, or expect more from it
    MORE_FAMILIAR = "more-familiar"  # only those that have met it more often
    MORE_HOPEFUL = "more-hopeful"  # only those that expect more


class Giving(enum.Enum):
    """Which teachers answer in AdHocTD."""

    BY_IMPORTANCE = "by-importance"  # the paper, Eq. 2
    ALWAYS = "always"  # what the authors' code does


class TeacherMemory(enum.Enum):
    """What a recurrent teacher remembers when it judges a student's observation."""

    STUDENT = "student"  # the student's memory before this step
    STUDENT_AFTER_STEP = "student-after-step"  # the authors' code with shared weights on a CPU: the step counts twice
    OWN = "own"  # the teacher's memory of its own episode
    HISTORY = "history"  # its own network's memory of the student's episode up to this step


class Consult(enum.Enum):
    """How agents act on their teammates' judgement during execution."""

    MEAN = "mean"  # by the mean of the whole team's values
    VOTE = "vote"  # by the action that most of the team would take
    BEST = "best"  # by the values of the agent that expects the most
    CONS = "cons"  # by their own policy, moved by the best and worst actions of those that expect more (Eq. 9)


class Preset(enum.Enum):
    """Settings that belong together."""

    PAPER = "paper"
    RELEASE = "release"
    RECOMMENDED = "recommended"


# settings of the authors' code in both methods that differ from the paper
RELEASED = dict(
    ask_gate=AskGate.EXPLORING, ask_when=AskWhen.FIRST_STEP, has_second_draw=True, enforces_answer_budget=False
)

# settings that make advice useful: teachers remember the student's episode, expect more than the student does, and are
# asked when the student would otherwise exploit, so that advice never replaces exploration; and students act on their
# own in about half of the episodes, since otherwise they never learn from their own mistakes
RECOMMENDED = dict(
    ask_gate=AskGate.EXPLOITING,
    teacher_memory=TeacherMemory.HISTORY,
    eligibility=Eligibility.MORE_HOPEFUL,
    start_episode=1_000,
    ask_share=0.5,
)
