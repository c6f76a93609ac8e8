"""The files of the repository: all files that git tracks, or, without git, all files except build outputs."""

import subprocess
from pathlib import Path

NOT_SOURCE = {".git", "build", ".cache", ".venv", "__pycache__"}


def files(root: Path) -> list[Path]:
    """Returns relative paths, sorted, also of files that git would track after `git add`."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    ) if (root / ".git").exists() else None
    if listed is not None and listed.returncode == 0:
        paths = {Path(name) for name in listed.stdout.decode().split("\0") if name}
    else:
        paths = {path.relative_to(root) for path in root.rglob("*") if not NOT_SOURCE & set(path.relative_to(root).parts)}
    return sorted(path for path in paths if (root / path).is_file())
