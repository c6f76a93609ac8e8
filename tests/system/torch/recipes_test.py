"""Frameworks over PyTorch train on the CPU over the backend: accelerate, Lightning and DeepSpeed, where they are installed.

Each recipe of docs/client.md runs under torchrun on two ranks, and ends with the same weights on both.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ranks import SKIPPED, finish, without_service

HEAD = """
import os, torch, torch.distributed as dist
import tributary.torch

torch.manual_seed(7)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
generator = torch.Generator().manual_seed(3)
data = torch.utils.data.TensorDataset(
    torch.randn(64, 16, generator=generator), torch.randint(4, (64,), generator=generator)
)
cross_entropy = torch.nn.functional.cross_entropy
"""

TAIL = """
weight = next(trained.parameters()).detach().clone().flatten()
copies = [torch.empty_like(weight) for _ in range(2)]
dist.all_gather(copies, weight)
assert torch.equal(*copies), "the ranks have different weights"
info = tributary.torch.info()
assert info["bytes_local"] + info["bytes_fallback"] + info["bytes_in_network"] > weight.numel() * 4, info
dist.destroy_process_group()
"""

RECIPES = {
    "accelerate": """
from accelerate import Accelerator

dist.init_process_group("tributary")
accelerator = Accelerator(cpu=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data, batch_size=8)
trained, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        accelerator.backward(cross_entropy(trained(inputs), labels))
        optimizer.step()
assert accelerator.num_processes == 2
assert accelerator.gather(torch.tensor([accelerator.process_index])).tolist() == [0, 1]
""",
    "lightning": """
import lightning

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model
    def training_step(self, batch, index):
        inputs, labels = batch
        return cross_entropy(self.model(inputs), labels)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

strategy = lightning.pytorch.strategies.DDPStrategy(process_group_backend="tributary")
trainer = lightning.Trainer(
    accelerator="cpu", devices=2, strategy=strategy, max_epochs=2, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trained = Module()
trainer.fit(trained, torch.utils.data.DataLoader(data, batch_size=8))
assert dist.get_backend() == "tributary", dist.get_backend()
""",
    "deepspeed": """
import deepspeed

deepspeed.init_distributed(dist_backend="tributary")
settings = {
    "train_micro_batch_size_per_gpu": 8,
    "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
    "zero_optimization": {"stage": 2},
}
trained, _, loader, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), training_data=data, config=settings
)
for _ in range(2):
    for inputs, labels in loader:
        trained.backward(cross_entropy(trained(inputs), labels))
        trained.step()
assert dist.get_backend() == "tributary", dist.get_backend()
""",
}


def recipe(name: str) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(HEAD + RECIPES[name] + TAIL)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=240, env=environment, check=False, cwd=folder
        )
    good = done.returncode == 0
    print(f"ok      {name}" if good else f"FAILED  {name}:\n{done.stdout}{done.stderr}", flush=True)
    return int(good), int(not good)


if __name__ == "__main__":
    without_service()
    installed = [name for name in sys.argv[1:] or RECIPES if importlib.util.find_spec(name)]
    if not installed:
        print(f"skipped: none of {', '.join(RECIPES)} is installed")
        sys.exit(SKIPPED)
    finish([recipe(name) for name in installed])
