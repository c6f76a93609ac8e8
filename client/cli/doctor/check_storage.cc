// Checks whether GPUDirect Storage is ready, which lets a GPU read data sets without the host's memory.
#include <algorithm>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/libraries.h"
#include "client/cli/doctor/pci.h"

namespace tributary::cli::doctor {
namespace {

constexpr const char* kWhy =
    "reads of data sets and checkpoints pass through host memory, where they share the bandwidth of the network";

Finding driver(const SystemTree& system) {
  Finding f{.part = "storage", .what = "nvidia-fs"};
  auto version = system.read("/sys/module/nvidia_fs/version");
  if (!version) version = system.read("/proc/driver/nvidia-fs/version");
  f.found = version ? "loaded, " + *version : "not loaded";
  if (version) return f;
  f.level = Level::warning;
  f.why = kWhy;
  f.mend = "install nvidia-fs (package nvidia-gds), then modprobe nvidia-fs; ignore it where no program uses cuFile";
  return f;
}

Finding library(const SystemTree& system) {
  const Libraries libraries(system);
  Finding f{.part = "storage", .what = "cuFile"};
  auto file = libraries.find("libcufile.so.0");
  for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/"}) {
    if (!file) file = libraries.find(std::string(folder) + "libcufile.so.0");
  }
  const std::string settings = environment_of(system, "CUFILE_ENV_PATH_JSON").value_or("/etc/cufile.json");
  const auto text = system.read(settings);
  f.found =
      file.value_or("libcufile.so.0 is in none of the loader's folders") + "; " + (text ? settings : "no " + settings);
  if (file && text) return f;
  f.level = Level::warning;
  f.why = file ? "cuFile takes its defaults, which may send reads through host memory without saying so" : kWhy;
  f.mend = file ? "cp /usr/local/cuda/gds/cufile.json /etc/cufile.json"
                : "install libcufile (part of the CUDA toolkit); ignore it where no program uses cuFile";
  return f;
}

}  // namespace

Findings check_storage(const SystemTree& system) {
  const auto gpus = gpus_of(system);
  if (std::ranges::none_of(gpus, [&](const std::string& id) { return is_nvidia(system, id); })) return {};
  return {driver(system), library(system)};
}

}  // namespace tributary::cli::doctor
