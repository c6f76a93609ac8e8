"""Fetches the virtual machine's kernel, and makes its initial file system, once. It keeps both under build/rdma-vm."""

import fcntl
import hashlib
import lzma
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

KERNEL_PACKAGE = "linux-image-6.12-amd64"  # the kernel's cloud flavour has neither rxe nor 9p
MODULES = (
    "virtio_pci virtio_console 9pnet_virtio 9p overlay crc32_generic crc32c_generic veth bridge dummy sch_netem sch_tbf sch_htb "
    "ib_uverbs rdma_ucm rdma_rxe"
).split()
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "depmod": "kmod",
    "cpio": "cpio",
    "ip": "iproute2",
    "zstd": "zstd",
    "dpkg": "dpkg",
    "apt-get": "apt",
}
VMLINUZ_HEADER_BYTES = 16384
MAGICS = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz"}


class Unavailable(Exception):
    """The machine cannot be made; the text says why."""


@dataclass(frozen=True)
class Image:
    kernel: Path
    initramfs: Path


def cache_folder() -> Path:
    return Path(__file__).resolve().parents[3] / "build" / "rdma-vm"


def which(tool: str) -> str | None:
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def obtain(rig: Path) -> Image:
    missing = sorted({package for tool, package in TOOLS.items() if not which(tool)})
    if missing:
        raise Unavailable(f"no RDMA device, and for a virtual machine these packages are missing: {' '.join(missing)} (scripts/setup --rdma)")
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    recipe = Path(__file__).read_bytes() + (rig / "guest-init").read_bytes()
    folder = cache / hashlib.sha256(recipe).hexdigest()[:16]
    image = Image(folder / "vmlinux", folder / "initramfs")
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                made = Path(scratch) / "image"
                made.mkdir()
                make(Path(scratch), made, rig)
                made.rename(folder)
    return image


def make(scratch: Path, out: Path, rig: Path) -> None:
    tree = fetch_kernel(scratch)
    vmlinuz = next((tree / "boot").glob("vmlinuz-*"))
    version = vmlinuz.name.removeprefix("vmlinuz-")
    (out / "vmlinux").write_bytes(uncompressed_kernel(vmlinuz))
    make_initramfs(tree, version, scratch / "root", out / "initramfs", rig)


def fetch_kernel(scratch: Path) -> Path:
    depends = subprocess.run(["apt-cache", "depends", KERNEL_PACKAGE], capture_output=True, text=True)
    names = [line.split()[1] for line in depends.stdout.splitlines() if line.strip().startswith("Depends: linux-image-")]
    if not names:
        raise Unavailable(f"the machine's package sources do not have {KERNEL_PACKAGE}")
    fetched = subprocess.run(["apt-get", "-qq", "download", names[0]], cwd=scratch, capture_output=True, text=True)
    packages = list(scratch.glob("*.deb"))
    if not packages:
        raise Unavailable(f"{names[0]} could not be fetched: {fetched.stderr.strip().splitlines()[-1:]}")
    tree = scratch / "kernel"
    subprocess.run(["dpkg", "-x", str(packages[0]), str(tree)], check=True)
    return tree


def uncompressed_kernel(vmlinuz: Path) -> bytes:
    """Returns the ELF file inside, which starts faster under emulation than a kernel that unpacks itself."""
    data = vmlinuz.read_bytes()
    for magic, form in MAGICS.items():
        at = data.find(magic, VMLINUZ_HEADER_BYTES)
        while at >= 0:
            if form == "xz":
                try:
                    elf = lzma.LZMADecompressor().decompress(data[at:])
                except lzma.LZMAError:
                    elf = b""
            else:
                elf = subprocess.run(["zstd", "-dcq"], input=data[at:], capture_output=True).stdout  # complains of the
                                                                                                     # bytes that follow
            if elf.startswith(b"\x7fELF"):
                return elf
            at = data.find(magic, at + 1)
    raise Unavailable(f"{vmlinuz.name} holds no kernel that can be unpacked")


def module_files(tree: Path, version: str) -> list[Path]:
    """Returns the modules in the order of loading; for a built-in module the program prints nothing."""
    subprocess.run([which("depmod"), "-b", str(tree), version], check=True)
    files: list[Path] = []
    for module in MODULES:
        shown = subprocess.run(
            [which("modprobe"), "-d", str(tree), "-S", version, "--show-depends", module], capture_output=True, text=True
        )
        for line in shown.stdout.splitlines():
            words = line.split()
            if words[:1] == ["insmod"] and Path(words[1]) not in files:
                files.append(Path(words[1]))
    return files


def make_initramfs(tree: Path, version: str, root: Path, out: Path, rig: Path) -> None:
    for folder in ("bin", "modules", "proc", "sys", "dev", "lower", "rw", "new"):
        (root / folder).mkdir(parents=True)
    shutil.copy(which("busybox"), root / "bin" / "busybox")
    shutil.copy(rig / "guest-init", root / "init")
    (root / "init").chmod(0o755)
    order = []
    for file in module_files(tree, version):
        name = file.name.removesuffix(".xz")
        data = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
        (root / "modules" / name).write_bytes(data)
        order.append(name)
    (root / "modules" / "order").write_text("\n".join(order) + "\n")
    archive = f"find . | cpio -o -H newc --quiet | gzip -1 > {out}"
    subprocess.run(["bash", "-o", "pipefail", "-c", archive], cwd=root, check=True)
