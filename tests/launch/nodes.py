"""Two Ray nodes of one processor each, in a process without JAX: `remove` takes one away, and the
end of standard input both."""

import sys

from ray.cluster_utils import Cluster

together = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
second = together.add_node(num_cpus=1)
print(together.address, flush=True)
for line in sys.stdin:
    if line.strip() == "remove":
        together.remove_node(second)
        print("removed", flush=True)
together.shutdown()
