"""A slow, literal transcription of the paper's Algorithms 1 to 3, and of AdHocTD: plain Python, one agent at a time.

It does not use the library. `Rules` has a setting for each point where the release departs from the paper. If two
compared numbers are closer than single precision can resolve, `TooCloseError` is raised, so that tests can skip cases
that rounding decides; exactly equal numbers count as equal and do not raise it.
"""

import itertools
import math
from dataclasses import dataclass, field

NEAR = 2e-6


class TooCloseError(Exception):
    """The result of a comparison would depend on rounding."""


def greater(left, right):
    if left != right and abs(left - right) < NEAR:
        raise TooCloseError
    return left > right


def differ(left, right):
    if left != right and abs(left - right) < NEAR:
        raise TooCloseError
    return left != right


@dataclass
class Rules:
    ask_scale: float = 0.5
    start_episode: int = 5000
    weights: str = "schedule"  # or "negative", "positive", "half"
    weight_shape: float = 0.0
    update_rate: float = 0.6
    temperature: float = 1.0
    normalise_after_indicator: bool = False
    counts_passing_as_knowledge: bool = False
    has_targeted_exploration: bool = True
    requires_seen: bool = False
    enforces_giving: bool = True
    asks_when: str = "always"  # or "exploring", "exploiting"
    teachers: str = "either"  # of Eq. 6, or "familiar", "hopeful", "any"
    hope_margin: float = 0.0
    gives_always: bool = False  # AdHocTD
    give_scale: float = 1.5  # AdHocTD


@dataclass
class Agent:
    """One agent: its visit counts, its values in every agent's situation, and its budgets."""

    counts: dict  # observation → number of visits
    values_in_place_of: list  # [student] → Q-values
    requests_left: int
    answers_left: int
    observation: object = None
    own_action: int = 0
    is_exploring: bool = False


@dataclass
class Draws:
    ask: float
    whether: float
    which: float
    giving: list = field(default_factory=list)


def softmax(values, temperature=1.0):
    top = max(values)
    parts = [math.exp((value - top) / temperature) for value in values]
    return [part / sum(parts) for part in parts]


def confidence_of(policy):
    size = len(policy)
    mean = sum(policy) / size
    deviation = math.sqrt(sum((probability - mean) ** 2 for probability in policy) / size)
    return min(size * deviation / math.sqrt(size - 1), 1.0)


def sample(weights, draw):
    """The first action whose cumulative weight exceeds the draw."""
    total, upto = sum(weights), 0.0
    for action, weight in enumerate(weights):
        upto += weight
        if weight > 0 and greater(upto, draw * total):
            return action
    raise TooCloseError


def algorithm_1(policy, confidence, draws):
    if greater(confidence, draws.whether):
        return policy.index(max(policy))
    intervals = len(policy) - 1
    removed = None
    for q in range(1, intervals + 1):
        if not greater(confidence, q / intervals):
            removed = q
            break
    ascending = sorted(range(len(policy)), key=lambda action: policy[action])
    for one, other in itertools.pairwise(ascending):
        greater(policy[other], policy[one])  # raises if rounding decides the order
    left = list(policy)
    for action in ascending[:removed]:
        left[action] = 0.0
    return sample(left, draws.which)


def may_ask(agent, rules):
    return {"always": True, "exploring": agent.is_exploring, "exploiting": not agent.is_exploring}[rules.asks_when]


def equation_6(own_visits, visits, own_best, best, rules):
    """Whether an agent may teach; some rules use only one of the paper's two conditions."""
    if rules.teachers == "any":
        return True
    is_familiar = own_visits > visits
    if rules.teachers == "familiar" or (rules.teachers == "either" and is_familiar):
        return is_familiar
    return greater(own_best, best + rules.hope_margin)


def algorithm_2(teacher, student_number, message, rules):
    """The teacher's message, or None."""
    if rules.enforces_giving and not teacher.answers_left > 0:
        return None
    observation, visits, best_value = message
    own_visits = teacher.counts.get(observation, 0)
    values = teacher.values_in_place_of[student_number]
    if rules.requires_seen and own_visits == 0:
        return None
    if equation_6(own_visits, visits, max(values), best_value, rules):
        policy = softmax(values)
        best, worst = policy.index(max(policy)), policy.index(min(policy))
        prestige = math.sqrt(own_visits) * confidence_of(policy)
        if rules.enforces_giving:
            teacher.answers_left -= 1
        return best, policy[best], worst, policy[worst], prestige
    return None


def pull(named, passing, targets, probability, rules):
    counted = passing if rules.normalise_after_indicator else named
    total = sum(math.exp(message[4]) for message in counted)
    return sum(
        math.exp(message[4]) / total * rules.update_rate * (message[targets] - probability) for message in passing
    )


def algorithm_3(agents, number, episode, rules, draws):
    """(action from others' knowledge or None, whether the agent asked, messages by teacher)."""
    agent = agents[number]
    values = agent.values_in_place_of[number]
    policy = softmax(values)
    visits = agent.counts[agent.observation]
    if not may_ask(agent, rules):
        return None, False, {}
    if not (episode > rules.start_episode and agent.requests_left > 0):
        return None, False, {}
    if not greater((1 + rules.ask_scale) ** -math.sqrt(visits), draws.ask):
        return None, False, {}
    message = (agent.observation, visits, max(values))
    replies = {j: algorithm_2(teacher, number, message, rules) for j, teacher in enumerate(agents) if j != number}
    replies = {j: reply for j, reply in replies.items() if reply is not None}
    if not replies:
        return None, True, replies
    negative = 1 / ((1 - rules.weight_shape) / rules.start_episode * episode + rules.weight_shape)
    negative = {"schedule": negative, "negative": 1.0, "positive": 0.0, "half": 0.5}[rules.weights]
    positive = 1 - negative
    modified, gets_knowledge = list(policy), False
    for action, probability in enumerate(policy):
        named_best = [reply for reply in replies.values() if reply[0] == action]
        named_worst = [reply for reply in replies.values() if reply[2] == action]
        if not named_best and not named_worst:
            continue
        raising = [reply for reply in named_best if greater(reply[1], probability)]
        lowering = [reply for reply in named_worst if greater(probability, reply[3])]
        modified[action] = (
            probability
            + positive * pull(named_best, raising, 1, probability, rules)
            + negative * pull(named_worst, lowering, 3, probability, rules)
        )
        if rules.counts_passing_as_knowledge:
            gets_knowledge |= bool(raising or lowering)
        else:
            gets_knowledge |= differ(modified[action], probability)
    if not gets_knowledge:
        return None, True, replies
    new_policy = softmax(modified, rules.temperature)
    if rules.has_targeted_exploration:
        return algorithm_1(new_policy, confidence_of(new_policy), draws), True, replies
    return sample(new_policy, draws.which), True, replies


def cons_step(agents, episode, rules, draws):
    """Step all agents in order: (actions, who asked, messages); budgets are updated in place."""
    for agent in agents:
        agent.counts[agent.observation] = agent.counts.get(agent.observation, 0) + 1
    actions, asked, messages = [], [], []
    for number, agent in enumerate(agents):
        shared, has_asked, replies = algorithm_3(agents, number, episode, rules, draws[number])
        if shared is not None:
            agent.requests_left -= 1
        actions.append(agent.own_action if shared is None else shared)
        asked.append(has_asked)
        messages.append(replies)
    return actions, asked, messages


def adhoc_step(agents, episode, rules, draws):
    """The same for AdHocTD, where agents follow the majority of their teachers."""
    for agent in agents:
        agent.counts[agent.observation] = agent.counts.get(agent.observation, 0) + 1
    actions, asked, messages = [], [], []
    for number, agent in enumerate(agents):
        visits = agent.counts[agent.observation]
        may = episode > rules.start_episode and agent.requests_left > 0
        may = may and may_ask(agent, rules)
        has_asked = may and greater((1 + rules.ask_scale) ** -math.sqrt(visits), draws[number].ask)
        advice = {}
        for j, teacher in enumerate(agents):
            if j == number or not has_asked or (rules.enforces_giving and not teacher.answers_left > 0):
                continue
            values = teacher.values_in_place_of[number]
            own_visits, best = teacher.counts.get(agent.observation, 0), max(agent.values_in_place_of[number])
            if not equation_6(own_visits, visits, max(values), best, rules):
                continue
            confidence = math.sqrt(own_visits) * (max(values) - min(values))
            chance = 1 - (1 + rules.give_scale) ** -confidence
            if rules.gives_always or greater(chance, draws[number].giving[j]):
                advice[j] = values.index(max(values))
                if rules.enforces_giving:
                    teacher.answers_left -= 1
        asked.append(has_asked)
        messages.append(advice)
        if not advice:
            actions.append(agent.own_action)
            continue
        agent.requests_left -= 1
        votes = [list(advice.values()).count(action) for action in range(len(agent.values_in_place_of[number]))]
        actions.append(sample([float(vote == max(votes)) for vote in votes], draws[number].which))
    return actions, asked, messages
