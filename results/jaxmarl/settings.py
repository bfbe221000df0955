"""Settings that both sides have in common: the environment, the budget and the seeds."""

ENV = "MPE_simple_spread_v3"
EPISODE_STEPS = 26  # MPE's 25, and one more that JaxMARL plays
EPISODES = 19_200
STEPS = EPISODES * EPISODE_STEPS  # 499,200
EVALUATIONS = 20
EVALUATION_EPISODES = 512
SEEDS = (100, 101, 102)
