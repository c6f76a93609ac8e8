"""One rank that trains a transformer on characters with DistributedDataParallel. training.py starts it and sends it
commands, one per line:

  rank -> bench   hello RANK PID PATH     PATH: the path of its reductions, in one word
  bench -> rank   train STEPS             answered by: result CPU_SECONDS SECONDS FORWARD BACKWARD OPTIMIZER LOSS PATH DIGEST
  bench -> rank   compute STEPS           the same, without reductions and without a change of the parameters
  bench -> rank   save FILE               rank 0 writes the parameters there
  bench -> rank compare FILE answered by: result DIFFERENCE CHANGE: norms, relative to the norm of the parameters and to
  the norm of the change by the training

Seconds are sums over the steps. Any failure ends the process, and its log says why.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import socket
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector

CORPUS = Path(__file__).resolve().parents[3] / "LICENSE"
CHARACTERS = 256
WIDTH_PER_HEAD = 64
LEARNING_RATE = 0.05


class CharacterModel(nn.Module):
    def __init__(self, layers: int, width: int, characters: int) -> None:
        super().__init__()
        self.of_character = nn.Embedding(CHARACTERS, width)
        self.of_position = nn.Embedding(characters, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, max(1, width // WIDTH_PER_HEAD), 4 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, CHARACTERS)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(characters), persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        values = self.of_character(text) + self.of_position.weight
        for layer in self.layers:
            values = layer(values, src_mask=self.mask, is_causal=True)
        return self.logits(self.norm(values))


def path_of(backend: str) -> str:
    if backend != "tributary":
        return backend
    import tributary.torch  # ranks of other backends do not need this package

    info = tributary.torch.info()
    return f"in-network-{info['levels']}" if info["path"] == "in-network" else info["path"]


class Phases:
    """A clock that adds up the time between marks."""

    def __init__(self) -> None:
        self.seconds = [0.0, 0.0, 0.0]
        self._last = 0.0

    def begin(self) -> None:
        self._last = time.monotonic()

    def end(self, phase: int) -> None:
        now = time.monotonic()
        self.seconds[phase] += now - self._last
        self._last = now


class Rank:
    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.options, self.rank = options, rank
        self.text = torch.frombuffer(bytearray(CORPUS.read_bytes()), dtype=torch.uint8).long()
        # All ranks use the same seed and so make the same parameters, which the digest in every answer proves: rank 0
        # need not send its parameters.
        self.model = DistributedDataParallel(self.new_model(), init_sync=False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)
        self.choice = torch.Generator().manual_seed(1000 + rank)

    def new_model(self) -> CharacterModel:
        torch.manual_seed(0)
        return CharacterModel(self.options.layers, self.options.width, self.options.characters)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        length = self.options.characters
        starts = torch.randint(len(self.text) - length, (self.options.batch,), generator=self.choice)
        rows = torch.stack([self.text[start : start + length + 1] for start in starts])
        return rows[:, :-1], rows[:, 1:]

    def step(self, phases: Phases) -> float:
        text, following = self.batch()
        phases.begin()
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(text).flatten(0, 1), following.flatten())
        phases.end(0)
        loss.backward()
        phases.end(1)
        self.optimizer.step()
        phases.end(2)
        return loss.item()

    def train(self, steps: int) -> str:
        phases = Phases()
        dist.all_reduce(torch.ones(1))  # all ranks begin at once
        cpu, begin, losses = time.process_time(), time.monotonic(), 0.0
        for _ in range(steps):
            losses += self.step(phases)
        seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
        path = path_of(self.options.backend)
        times = " ".join(f"{it:.9f}" for it in (cpu, seconds, *phases.seconds))
        return f"{times} {losses / steps:.6f} {path} {self.digest()}"

    def compute(self, steps: int) -> str:
        with torch.no_grad():
            before = [it.clone() for it in self.model.parameters()]
        choice = self.choice.get_state()
        with self.model.no_sync():
            answer = self.train(steps).rsplit(" ", 1)[0]
        self.choice.set_state(choice)
        with torch.no_grad():
            for parameter, value in zip(self.model.parameters(), before, strict=True):
                parameter.copy_(value)
        return f"{answer} {self.digest()}"

    def parameters(self) -> torch.Tensor:
        return parameters_to_vector(self.model.parameters()).detach()

    def digest(self) -> str:
        found = hashlib.sha256()
        for parameter in self.model.parameters():
            found.update(parameter.detach().numpy())
        return found.hexdigest()[:16]

    def save(self, file: str) -> str:
        if self.rank == 0:
            torch.save(self.parameters(), file)
        return "saved"

    def compare(self, file: str) -> str:
        theirs = torch.load(file)
        initial = parameters_to_vector(self.new_model().parameters()).detach()
        difference = (self.parameters() - theirs).norm()
        return f"{difference / theirs.norm():.3e} {difference / (theirs - initial).norm():.3e}"

    def answer(self, line: str) -> str:
        word, argument = line.split(maxsplit=1)
        argument = argument.strip()
        match word:
            case "train":
                return self.train(int(argument))
            case "compute":
                return self.compute(int(argument))
            case "save":
                return self.save(argument)
            case "compare":
                return self.compare(argument)
        raise ValueError(f"no command: {line}")


def parse() -> argparse.Namespace:
    it = argparse.ArgumentParser()
    it.add_argument("store")
    it.add_argument("backend")
    for name in ("layers", "width", "characters", "batch"):
        it.add_argument(f"--{name}", type=int, required=True)
    return it.parse_args()


def main() -> None:
    options = parse()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    if options.backend == "tributary":
        import tributary.torch  # noqa: F401  registers the backend
    dist.init_process_group(
        options.backend, init_method=f"file://{options.store}", rank=rank, world_size=ranks,
        timeout=timedelta(seconds=300),
    )  # fmt: skip
    me = Rank(options, rank)
    dist.all_reduce(torch.ones(1))
    with socket.socket(socket.AF_UNIX) as end, contextlib.suppress(BrokenPipeError):
        end.connect(os.environ["PEERS_CONTROL"])
        with end.makefile("r") as commands:
            end.sendall(f"hello {rank} {os.getpid()} {path_of(options.backend)}\n".encode())
            for line in commands:
                end.sendall(f"result {me.answer(line)}\n".encode())
    dist.destroy_process_group()


main()
