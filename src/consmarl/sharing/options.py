"""The readings that paper and release leave open or disagree on, as choices with names."""

import enum


class AskGate(enum.Enum):
    """When an agent may think of asking at all."""

    ALWAYS = "always"  # the paper, Algorithm 3
    EXPLORING = "exploring"  # the authors' code: only in the ε branch
    STARTING_TO_EXPLORE = "starting-to-explore"  # as EXPLORING, but not in the middle of a run of repeated actions
    EXPLOITING = "exploiting"  # only when it would act greedily, so that advice never replaces exploration


class AskWhen(enum.Enum):
    """In which steps of an episode an agent may ask."""

    EVERY_STEP = "every-step"  # the paper
    FIRST_STEP = "first-step"  # what the authors' code does
    FIRST_VISIT = "first-visit"  # what the authors' code means to do: on what was not met in this episode yet


class Knowledge(enum.Enum):
    """Which knowledge counts, and how its weights come about."""

    SCHEDULE = "schedule"  # the paper, Eq. 8
    NEGATIVE_ONLY = "negative-only"  # CONS-wo-P; what the authors' code does
    POSITIVE_ONLY = "positive-only"  # CONS-wo-N
    FIXED = "fixed"  # `fixed_negative_weight`; the authors' code has a mode with one half


class Normalisation(enum.Enum):
    """Among whom the weights of teachers add up to 1 (Eq. 10)."""

    ALL_NAMING = "all-naming"  # the paper: all who name the action, whether or not the indicator lets them count
    PASSING = "passing"  # the authors' code: those whom the indicator lets count


class Gained(enum.Enum):
    """What makes answers knowledge, so that the student follows them and pays."""

    PROBABILITY_CHANGED = "probability-changed"  # the paper, Algorithm 3
    TEACHER_PASSED = "teacher-passed"  # the authors' code: an indicator of Eq. 9 held, be its weight zero


class Sampling(enum.Enum):
    """How the student draws from its new policy."""

    TARGETED = "targeted"  # the paper, Algorithm 1
    PLAIN = "plain"  # CONS-wo-TE


class Eligibility(enum.Enum):
    """Who may teach: the halves of Eq. 6."""

    ANYONE = "anyone"
    EITHER = "either"  # the paper's CONS: who met the observation more often, or hopes for more from it
    MORE_FAMILIAR = "more-familiar"  # only who met it more often
    MORE_HOPEFUL = "more-hopeful"  # only who hopes for more


class Giving(enum.Enum):
    """Which teachers answer in AdHocTD."""

    BY_IMPORTANCE = "by-importance"  # the paper, Eq. 2
    ALWAYS = "always"  # what the authors' code does


class TeacherMemory(enum.Enum):
    """What a recurrent teacher remembers when it looks at a student's observation."""

    STUDENT = "student"  # what the student remembers before this step
    STUDENT_AFTER_STEP = "student-after-step"  # the authors' code with shared weights on a CPU: the step counts twice
    OWN = "own"
    HISTORY = "history"  # what its own network makes of the student's episode up to this step


class Consult(enum.Enum):
    """How agents act on what their teammates think, in execution."""

    MEAN = "mean"  # by the mean of the whole team's values
    VOTE = "vote"  # by the action that most of the team would take
    BEST = "best"  # by the values of whoever hopes for most
    CONS = "cons"  # by their own policy, moved by the best and worst actions of those who hope for more (Eq. 9)


class Preset(enum.Enum):
    """Settings that belong together."""

    PAPER = "paper"
    RELEASE = "release"
    RECOMMENDED = "recommended"
