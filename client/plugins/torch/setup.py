"""Builds the Python package `tributary`: the backend "tributary" of torch.distributed, and the parts for JAX
and TensorFlow.

The package is built from source against the installed PyTorch, and works only with this version; the import checks it.
With TRIBUTARY_WITHOUT_TORCH=1 it leaves PyTorch's part out and needs no PyTorch: for JAX and TensorFlow.
The build takes libtributary from TRIBUTARY_ROOT (an installation, or the build directory of a checkout); if the
variable is not set, pkg-config finds the library. TRIBUTARY_BUNDLE is for a wheel that other hosts install
(scripts/package --wheel): it names a folder of licences. The package then holds a copy of the library and these
licences, and its version contains PyTorch's version.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
VERSION = "0.1.0"
BUNDLE = os.environ.get("TRIBUTARY_BUNDLE", "")
WITHOUT_TORCH = os.environ.get("TRIBUTARY_WITHOUT_TORCH", "") == "1"
LIBRARY = "libtributary.so.0"  # name of the library that the extension loads
PLUGINS = ("jax", "tensorflow")  # each has a library libtributary-NAME.so
SOURCES = [
    "process.cc",
    "error.cc",
    "meeting.cc",
    "numerics.cc",
    "element.cc",
    "work.cc",
    "serial_thread.cc",
    "endings.cc",
    "staging.cc",
    "communicator.cc",
    "backend.cc",
    "reductions.cc",
    "movements.cc",
    "sparse.cc",
    "shrink.cc",
]

NO_TORCH = """PyTorch is not installed for {python}.
Install it first (pip install "torch>=2.7"), then run this again: the package is compiled against the installed
version. If you need only JAX or TensorFlow, set TRIBUTARY_WITHOUT_TORCH=1."""

NO_LIBRARY = """libtributary was not found.
Build and install it (cmake --preset release && cmake --build --preset release && cmake --install build/release),
or set TRIBUTARY_ROOT to its installation prefix or build directory, and run this again.
Looked in: {places}"""


def torch_folder() -> Path:
    """Returns PyTorch's folder without an import. Also works in pip's isolated builds, whose path lacks PyTorch."""
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        return Path(spec.origin).parent
    for scheme in ("platlib", "purelib"):
        folder = Path(sysconfig.get_path(scheme)) / "torch"
        if (folder / "version.py").exists():
            return folder
    sys.exit(NO_TORCH.format(python=sys.executable))


def torch_version(folder: Path) -> str:
    match = re.search(r"^__version__\s*=\s*['\"](.+)['\"]", (folder / "version.py").read_text(), re.MULTILINE)
    if not match:
        sys.exit(f"{folder}/version.py does not name the version of PyTorch")
    return match[1]


def pybind_flags(torch: Path) -> list[str]:
    """Returns flags for older PyTorch, such as 2.7: it shares classes only with extensions that name its compiler."""
    names = ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
    program = f"import torch; print(*(getattr(torch._C, '_PYBIND11_' + name, None) for name in {names}))"
    environment = {**os.environ, "PYTHONPATH": str(torch.parent), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment
    )
    values = dict(zip(names, answer.stdout.split(), strict=True))
    return [f'-DPYBIND11_{name}="{value}"' for name, value in values.items() if value != "None"]


def from_root(root: Path) -> tuple[list[Path], Path] | None:
    """Returns (include directories, library directory) of an installation or a build directory."""
    libraries = [*root.glob("libtributary.so"), *root.glob("*/libtributary.so"), *root.glob("lib/*/libtributary.so")]
    includes = [
        folder
        for folder in (root / "include", HERE.parent.parent / "include")
        if (folder / "tributary/tributary.h").exists()
    ]
    return ([includes[0]], libraries[0].resolve().parent) if libraries and includes else None


def from_pkg_config() -> tuple[list[Path], Path] | None:
    try:
        flags = subprocess.run(
            ["pkg-config", "--cflags-only-I", "--keep-system-cflags", "tributary"],
            capture_output=True,
            text=True,
            check=True,
        )
        libdir = subprocess.run(
            ["pkg-config", "--variable=libdir", "tributary"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return [Path(flag[2:]) for flag in flags.stdout.split()], Path(libdir.stdout.strip())


def libtributary() -> tuple[list[Path], Path]:
    root = os.environ.get("TRIBUTARY_ROOT")
    found = from_root(Path(root).resolve()) if root else from_pkg_config()
    if not found:
        sys.exit(
            NO_LIBRARY.format(
                places=f"TRIBUTARY_ROOT={root}"
                if root
                else "pkg-config (no package 'tributary'); TRIBUTARY_ROOT is not set"
            )
        )
    return found


def plugin_library(name: str) -> str:
    """Returns the path of libtributary-NAME.so beside libtributary, or in the build directory; "" if it is not there."""
    folder, file = libtributary()[1], f"libtributary-{name}.so"
    places = [folder / file, folder / "plugins" / name / file]
    return next((str(place) for place in places if place.exists()), "")


class BuildExtension(build_ext):
    """Compiles the module's two translation units at the same time.

    PyTorch's headers take nearly all the time, so all sources except module.cc are compiled as one unit.
    """

    def build_extension(self, ext: Extension) -> None:
        torch = torch_folder()
        includes, library = libtributary()
        scratch = Path(self.build_temp)
        scratch.mkdir(parents=True, exist_ok=True)
        unit = scratch / "backend_unit.cc"
        unit.write_text("".join(f'#include "{HERE}/csrc/{source}"\n' for source in SOURCES))

        arguments = [
            "-std=c++20",
            "-O2",
            "-g0",
            "-fPIC",
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-DTORCH_EXTENSION_NAME=_C",
        ]
        arguments += pybind_flags(torch)
        for folder in (torch / "include", torch / "include/torch/csrc/api/include", *includes):
            arguments += ["-isystem", str(folder)]

        def compile_one(source: str) -> list[str]:
            return self.compiler.compile([source], output_dir=str(scratch), extra_postargs=arguments)

        with ThreadPoolExecutor() as pool:
            objects = [
                name for names in pool.map(compile_one, [str(unit), str(HERE / "csrc/module.cc")]) for name in names
            ]
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.compiler.link_shared_object(
            objects,
            str(target),
            libraries=["tributary", "c10", "torch_cpu", "torch_python"],
            library_dirs=[str(library), str(torch / "lib")],
            extra_postargs=["-Wl,--enable-new-dtags", f"-Wl,-rpath,{'$ORIGIN' if BUNDLE else library}"],
            target_lang="c++",
        )
        if BUNDLE:
            shutil.copy(library / LIBRARY, target.parent / LIBRARY)


class BuildPython(build_py):
    """Writes facts into the package: its version of PyTorch, whether it holds copies of the libraries, their paths."""

    def run(self) -> None:
        super().run()
        folder = Path(self.build_lib) / "tributary"
        folder.mkdir(parents=True, exist_ok=True)
        libraries = {f"{name.upper()}_LIBRARY": plugin_library(name) for name in PLUGINS}
        libraries["LIBRARY"] = str(libtributary()[1] / LIBRARY)
        facts = {
            "TORCH_VERSION": "" if WITHOUT_TORCH else torch_version(torch_folder()),
            "BUNDLED": bool(BUNDLE),
            **{name: "" if BUNDLE else path for name, path in libraries.items()},
        }
        lines = [f"{name} = {value!r}\n" for name, value in facts.items()]
        (folder / "_build.py").write_text('"""Written by the build."""\n\n' + "".join(lines))
        if BUNDLE:
            for path in filter(None, libraries.values()):
                shutil.copy(path, folder / Path(path).name)
            shutil.copytree(BUNDLE, folder / "licenses", dirs_exist_ok=True)


def torch_part() -> dict[str, object]:
    """Returns what PyTorch's part adds to the package; nothing without it."""
    if WITHOUT_TORCH:
        return {"version": VERSION, "install_requires": []}
    public_version = torch_version(torch_folder()).split("+")[0]
    return {
        "version": f"{VERSION}+torch{public_version}" if BUNDLE else VERSION,
        "install_requires": [f"torch=={public_version}"],
        "ext_modules": [Extension("tributary._C", sources=[f"csrc/{source}" for source in (*SOURCES, "module.cc")])],
        "entry_points": {
            "torch.distributed.backends": ["tributary = tributary.registration:register"],
            "torch.backends": ["tributary = tributary.registration:register"],
        },
    }


if __name__ == "__main__":
    setup(
        name="tributary",
        description='In-network reduction for PyTorch (the backend "tributary" of torch.distributed), JAX and TensorFlow',
        license="Apache-2.0",
        python_requires=">=3.10",
        package_dir={"": "python"},
        packages=["tributary", "tributary.tensorflow"],
        package_data={"tributary": ["py.typed", "*.pyi"]},
        cmdclass={"build_ext": BuildExtension, "build_py": BuildPython},
        zip_safe=False,
        **torch_part(),
    )
