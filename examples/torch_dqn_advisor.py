"""Knowledge sharing for a DQN in PyTorch; only the lines marked with ← are needed for it.

Three agents, each with its own network, optimiser and replay, learn in Patient Gold Miner. PyTorch is not a dependency
of consmarl: `pip install torch`, then `python examples/torch_dqn_advisor.py`.
"""

import random
from collections import deque

import numpy as np
import torch
from torch import nn

import consmarl


def network(num_inputs: int, num_actions: int) -> nn.Module:
    """Return a small Q-network."""
    return nn.Sequential(nn.Linear(num_inputs, 64), nn.ReLU(), nn.Linear(64, num_actions))


@torch.no_grad()
def q_values(net: nn.Module, observation: np.ndarray) -> np.ndarray:
    """Return a network's Q-values for an observation."""
    return net(torch.from_numpy(observation)).numpy()


def learn(net: nn.Module, optimiser: torch.optim.Optimizer, batch: list[tuple]) -> None:
    """Take one step of Q-learning on a batch of transitions."""
    seen, actions, rewards, following, is_over = (torch.as_tensor(np.array(each)) for each in zip(*batch, strict=True))
    with torch.no_grad():
        targets = rewards.float() + 0.99 * net(following).amax(dim=1) * ~is_over
    chosen = net(seen).gather(1, actions[:, None])[:, 0]
    optimiser.zero_grad()
    nn.functional.smooth_l1_loss(chosen, targets).backward()
    optimiser.step()


def train(num_episodes: int = 400, *, start_episode: int = 50, seed: int = 0) -> tuple[list[float], int]:
    """Return the team's return in every episode, and the number of advised actions."""
    torch.manual_seed(seed)
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    env = consmarl.parallel_env("pgm-3ag")
    names = env.possible_agents
    num_inputs, num_actions = env.observation_space(names[0]).shape[0], int(env.action_space(names[0]).n)
    nets = [network(num_inputs, num_actions) for _ in names]
    optimisers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in nets]
    replays = [deque(maxlen=20_000) for _ in names]
    advisor = consmarl.Advisor(len(names), num_actions, consmarl.Cons(start_episode=start_episode), seed=seed)  # ←
    returns, num_advised = [], 0

    for episode in range(num_episodes):
        advisor.begin_episode()  # ←
        observed, _ = env.reset(seed=episode)
        returns.append(0.0)
        while env.agents:
            seen = list(observed.values())
            values = np.array([q_values(net, each) for net, each in zip(nets, seen, strict=True)])
            explores = chance.random(len(names)) < max(0.05, 1 - episode / 200)
            actions = np.where(explores, chance.integers(num_actions, size=len(names)), values.argmax(axis=1))
            actions = advisor.advise(seen, values, actions, lambda j, _i, seen: q_values(nets[j], seen))  # ←
            num_advised += advisor.is_advised.sum()
            observed, rewards, terminated, _, _ = env.step(dict(zip(names, actions.tolist(), strict=True)))
            for agent, name in enumerate(names):
                step = (seen[agent], actions[agent], rewards[name], observed[name], terminated[name])
                replays[agent].append(step)
                if len(replays[agent]) >= 500:
                    learn(nets[agent], optimisers[agent], dice.sample(replays[agent], 32))
            returns[-1] += sum(rewards.values())
    return returns, int(num_advised)


if __name__ == "__main__":
    returns, num_advised = train()
    print(f"return {np.mean(returns[:50]):.1f} at first, {np.mean(returns[-50:]):.1f} in the end; "
          f"{num_advised} actions were advised")  # fmt: skip
