// Checks NCCL: its version, and the network plugin that it would load.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/kernel_text.h"
#include "client/cli/doctor/libraries.h"
#include "client/cli/doctor/pci.h"

namespace tributary::cli::doctor {
namespace {

// The versions of NCCL that docs/nccl.md names.
constexpr std::uint64_t kMinorMin = 18, kMinorMax = 32;

/// Returns a setting of NCCL, which reads /etc/nccl.conf for names that the environment does not have.
std::optional<std::string> setting(const SystemTree& system, const std::string& name) {
  if (auto value = environment_of(system, name)) return value;
  const std::string file = system.read("/etc/nccl.conf").value_or("");
  const auto value = line_after(file, name + "=");
  return value ? std::optional<std::string>(*value) : std::nullopt;
}

/// Returns the name of a library's file after all links, such as "libnccl.so.2.27.3".
std::string name_of(const SystemTree& system, const std::string& path) {
  const std::string whole = system.resolved(path);
  return whole.substr(whole.rfind('/') + 1);
}

Finding version(const SystemTree& system, const Libraries& libraries) {
  Finding f{.part = "nccl", .what = "version"};
  const auto file = libraries.find("libnccl.so.2");
  if (!file) {
    f.level = Level::unknown;
    f.found = "libnccl.so.2 is in none of the loader's folders; a framework may bring its own";
    f.mend = "python3 -c 'import torch; print(torch.cuda.nccl.version())'";
    return f;
  }
  const std::string name = name_of(system, *file);
  const std::string number = name.starts_with("libnccl.so.") ? name.substr(11) : "";
  const std::size_t dot = number.find('.');
  if (dot == std::string::npos) {
    f.level = Level::unknown;
    f.found = *file + ", whose name has no version";
    f.mend = "NCCL_DEBUG=VERSION in the job";
    return f;
  }
  const std::uint64_t minor = first_number(std::string_view(number).substr(dot));
  f.found = fmt::format("{} ({})", number, *file);
  if (first_number(number) == 2 && minor >= kMinorMin && minor <= kMinorMax) return f;
  f.level = Level::warning;
  f.why = fmt::format("Tributary's plugin is made for NCCL 2.{} to 2.{}: another version may ignore it", kMinorMin,
                      kMinorMax);
  f.mend = "install an NCCL of these versions (package libnccl2)";
  return f;
}

/// Returns the names that NCCL tries with dlopen, in order, for a value of NCCL_NET_PLUGIN, which is a list with
/// commas.
std::vector<std::string> candidates(const std::string& wanted) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < wanted.size();) {
    const std::size_t end = std::min(wanted.find(',', at), wanted.size());
    const std::string one = wanted.substr(at, end - at);
    names.push_back(one);
    names.push_back("libnccl-net-" + one + ".so");
    at = end + 1;
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Finding plugin(const SystemTree& system, const Libraries& libraries) {
  Finding f{.part = "nccl", .what = "plugin"};
  const auto wanted = setting(system, "NCCL_NET_PLUGIN");
  if (wanted == "none") {
    f.found = "NCCL_NET_PLUGIN=none: NCCL loads no plugin";
    return f;
  }
  const auto names = wanted && !wanted->empty() ? candidates(*wanted) : std::vector<std::string>{"libnccl-net.so"};
  std::optional<std::string> file;
  for (const std::string& name : names) {
    if (!file) file = libraries.find(name);
  }
  f.found = file ? fmt::format("NCCL would load {}", *file) : fmt::format("NCCL finds no plugin: {}", joined(names));
  if (file) {
    const bool ours = name_of(system, *file).contains("tributary");
    f.found += ours ? "" : ", which is not Tributary's plugin";
    return f;
  }
  if (!wanted || wanted->empty()) {
    f.found += "; NCCL_NET_PLUGIN is not set";
    return f;
  }
  f.level = Level::bad;
  f.why = "NCCL goes on with its own sockets or verbs, and says so only at NCCL_DEBUG=INFO: no byte goes by a tree";
  f.mend = "install libnccl-net-tributary and run ldconfig, or add its folder to LD_LIBRARY_PATH";
  return f;
}

}  // namespace

Findings check_nccl(const SystemTree& system) {
  const auto gpus = gpus_of(system);
  const bool nvidia = std::ranges::any_of(gpus, [&](const std::string& id) { return is_nvidia(system, id); });
  if (!nvidia && !setting(system, "NCCL_NET_PLUGIN")) return {};
  const Libraries libraries(system);
  return {version(system, libraries), plugin(system, libraries)};
}

}  // namespace tributary::cli::doctor
