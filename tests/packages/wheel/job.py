"""A job of wheel_test: sums a tensor over all ranks, in the network, by the library inside the environment PREFIX.

job.py PREFIX
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

# Do not import tributary.torch: the package's entry point registers the name.
dist.init_process_group("tributary")
import tributary  # noqa: E402

rank, ranks = dist.get_rank(), dist.get_world_size()
tensor = torch.arange(100_000, dtype=torch.float32) + rank
dist.all_reduce(tensor)
expected = torch.arange(100_000, dtype=torch.float32) * ranks + ranks * (ranks - 1) / 2
assert torch.equal(tensor, expected), "wrong sum"

info = tributary.info()
assert info["bytes_in_network"] == 400_000 and info["bytes_fallback"] == 0, info
loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libtributary" in line}
assert loaded and all(path.startswith(sys.argv[1]) for path in loaded), loaded
print(f"rank {rank}: {info['bytes_in_network']} bytes in the network")
dist.destroy_process_group()
