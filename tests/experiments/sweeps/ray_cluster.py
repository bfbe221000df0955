"""A Ray cluster of several nodes on this machine, in a process of its own: Ray forks, which is unsafe with JAX.

It prints its address, and stops when its standard input is closed.
"""

import sys

from ray.cluster_utils import Cluster


def main():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    print(f"address {cluster.address}", flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
