"""Knowledge sharing for a recurrent Q-network in PyTorch; only the lines marked with ← are needed for it.

Three agents learn in Patient Gold Miner, each with its own network, optimiser and memory. One network's memory is
meaningless to another, so a teacher gets the student's episode so far, and its own network processes that. PyTorch is
not a dependency of consmarl: `pip install torch`, then `python examples/torch_drqn_advisor.py`.
"""

import random
from collections import deque

import numpy as np
import torch
from torch import nn

import consmarl


class RecurrentQ(nn.Module):
    """Linear → GRU → Linear, with an agent's observation and last action as inputs."""

    def __init__(self, num_inputs: int, num_actions: int) -> None:
        """Initialise the weights."""
        super().__init__()
        self.num_actions = num_actions
        self.encoder = nn.Linear(num_inputs + num_actions, 32)
        self.memory = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, num_actions)

    def forward(self, seen: torch.Tensor, last: torch.Tensor, memory: torch.Tensor | None = None) -> tuple:
        """Return Q-values of all steps, and the memory, for observations [episode, step, …] and last actions.

        Last actions are [episode, step], −1 at the first step.
        """
        did = nn.functional.one_hot(last + 1, self.num_actions + 1)[..., 1:]  # zeros for −1, i.e. none
        hidden, memory = self.memory(self.encoder(torch.cat([seen, did], dim=-1)).relu(), memory)
        return self.head(hidden), memory


@torch.no_grad()
def q_values(net: RecurrentQ, episode: consmarl.History) -> np.ndarray:
    """Return a network's Q-values at the end of an episode so far."""
    values, _ = net(torch.from_numpy(episode.observations)[None], torch.from_numpy(episode.last_actions)[None])
    return values[0, -1].numpy()


def learn(net: RecurrentQ, optimiser: torch.optim.Optimizer, episodes: list[tuple]) -> None:
    """Take one step of Q-learning on whole episodes, which all have the same length."""
    seen, last, rewards = (torch.as_tensor(np.array(each)) for each in zip(*episodes, strict=True))
    values, _ = net(seen, last)
    chosen = values[:, :-1].gather(2, last[:, 1:, None])[..., 0]
    following = values[:, 1:].amax(dim=2).detach()
    following[:, -1] = 0  # the episode is over
    optimiser.zero_grad()
    nn.functional.smooth_l1_loss(chosen, rewards.float() + 0.99 * following).backward()
    optimiser.step()


def train(num_episodes: int = 100, *, start_episode: int = 20, seed: int = 0) -> tuple[list[float], int]:
    """Return the team's return in every episode, and the number of advised actions."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # more threads do not help with networks this small
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    env = consmarl.parallel_env("pgm-3ag", grid=(4, 4), mining_steps=2, episode_limit=12)  # small, to be quick
    names = env.possible_agents
    num_inputs, num_actions = env.observation_space(names[0]).shape[0], int(env.action_space(names[0]).n)
    nets = [RecurrentQ(num_inputs, num_actions) for _ in names]
    optimisers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in nets]
    replays = [deque(maxlen=1_000) for _ in names]
    sharing = consmarl.Cons(start_episode=start_episode, teacher_memory="history")  # ←
    advisor = consmarl.Advisor(len(names), num_actions, sharing, seed=seed)  # ←
    returns, num_advised = [], 0

    for episode in range(num_episodes):
        advisor.begin_episode()  # ←
        observed, _ = env.reset(seed=episode)
        seen, did, earned, memories = [list(observed.values())], [[-1] * len(names)], [], [None] * len(names)
        while env.agents:
            values = np.zeros((len(names), num_actions))
            for agent, net in enumerate(nets):
                now = torch.from_numpy(seen[-1][agent])[None, None], torch.tensor([[did[-1][agent]]])
                with torch.no_grad():
                    told, memories[agent] = net(*now, memories[agent])
                values[agent] = told[0, 0]
            explores = chance.random(len(names)) < max(0.05, 1 - episode / 50)
            actions = np.where(explores, chance.integers(num_actions, size=len(names)), values.argmax(axis=1))
            actions = advisor.advise(seen[-1], values, actions, lambda j, _i, past: q_values(nets[j], past))  # ←
            num_advised += advisor.is_advised.sum()
            observed, rewards, _, _, _ = env.step(dict(zip(names, actions.tolist(), strict=True)))
            seen.append(list(observed.values()))
            did.append(actions.tolist())
            earned.append(list(rewards.values()))
        for agent, replay in enumerate(replays):
            replay.append(tuple(np.array([step[agent] for step in steps]) for steps in (seen, did, earned)))
            if len(replay) >= 16:
                learn(nets[agent], optimisers[agent], dice.sample(replay, 16))
        returns.append(float(np.sum(earned)))
    return returns, int(num_advised)


if __name__ == "__main__":
    returns, num_advised = train()
    print(f"return {np.mean(returns):.1f} on average of {len(returns)} episodes; {num_advised} actions were advised")
