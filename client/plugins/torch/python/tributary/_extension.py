"""Loads the compiled module, or raises an ImportError that says why the load failed and how to mend it."""

from __future__ import annotations

import torch

from tributary._build import BUNDLED, TORCH_VERSION

_REINSTALL = (
    "Install the wheel that was made for this PyTorch; in the source tree, scripts/package --wheel makes it."
    if BUNDLED
    else "Build it again from the source tree: "
    "pip install --no-build-isolation --force-reinstall --no-deps ./client/plugins/torch"
)

if not TORCH_VERSION:
    raise ImportError(
        "this installation of tributary has no part for PyTorch. Install it again without TRIBUTARY_WITHOUT_TORCH"
    )
if torch.__version__ != TORCH_VERSION:
    raise ImportError(
        f"tributary was built for PyTorch {TORCH_VERSION}, but {torch.__version__} is installed. {_REINSTALL}"
    )

try:
    from tributary import _C
except ImportError as error:
    if "libtributary" in str(error):
        raise ImportError(
            f"tributary cannot load its library ({error}). "
            f"If it was moved, name its directory in LD_LIBRARY_PATH. {_REINSTALL}"
        ) from error
    raise ImportError(f"tributary cannot load its extension ({error}). {_REINSTALL}") from error

__all__ = ["_C"]
