"""Finds out which rank this process is, from the variables that a launcher sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

PORT = 29500  # torchrun's default


@dataclass(frozen=True)
class Launch:
    """A process of a job. `address` is rank 0's, or empty if no variable names it."""

    rank: int
    size: int
    local_rank: int
    local_size: int  # 1 if the launcher does not name it
    address: str


# Names of the variables: rank, size, rank on the host, size on the host. `tributary run` and torchrun set the first row.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""),
)


def _number(variables: Mapping[str, str], name: str, least: int) -> int:
    text = variables[name]
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name} is {text!r}; it must be a number from {least} on")
    return int(text)


def _first_of_node_list(names: str) -> str:
    """Returns the first host of Slurm's list: "gpu03" of "gpu[03-07,9],login1"."""
    head, bracket, rest = names.partition("[")
    if "," in head or not bracket:
        return head.partition(",")[0]
    return head + rest.replace("]", ",").replace("-", ",").partition(",")[0]


def find(variables: Mapping[str, str] = os.environ) -> Launch | None:
    """Returns None if no launcher has set its variables."""
    for rank_name, size_name, local_rank_name, local_size_name in _LAUNCHERS:
        if rank_name not in variables or size_name not in variables:
            continue
        rank, size = _number(variables, rank_name, 0), _number(variables, size_name, 1)
        if rank >= size:
            raise ValueError(f"{rank_name} is {rank}, but {size_name} is {size}: ranks count from 0")
        local_size = _number(variables, local_size_name, 1) if variables.get(local_size_name) else 1
        local_rank = _number(variables, local_rank_name, 0) if variables.get(local_rank_name) else 0
        host = variables.get("MASTER_ADDR", "")
        if not host and local_size == size:
            host = "127.0.0.1"
        if not host and size_name == "SLURM_NTASKS":
            host = _first_of_node_list(variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_NODELIST", ""))
        port = _number(variables, "MASTER_PORT", 1) if "MASTER_PORT" in variables else PORT
        if variables.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            port += 1  # torchrun's own store listens at MASTER_PORT
        return Launch(rank, size, local_rank, local_size, f"{host}:{port}" if host else "")
    return None
