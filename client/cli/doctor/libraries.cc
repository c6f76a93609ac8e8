#include "client/cli/doctor/libraries.h"

#include <algorithm>

#include "client/cli/doctor/kernel_text.h"

namespace tributary::cli::doctor {

std::optional<std::string> environment_of(const transport::SystemTree& system, const std::string& name) {
  return variable_in(system.read("/proc/self/environ").value_or(""), name);
}

Libraries::Libraries(const transport::SystemTree& system) : system_(system) {
  std::string path = environment_of(system, "LD_LIBRARY_PATH").value_or("");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    add(path.substr(at, end - at));
    at = end + 1;
  }
  add_configured("/etc/ld.so.conf", 0);
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    add(folder);
}

void Libraries::add(std::string folder) {
  if (!folder.empty() && std::ranges::find(folders_, folder) == folders_.end()) folders_.push_back(std::move(folder));
}

/// Reads a configuration file. A line is a folder, or "include" with a pattern of files in one folder.
void Libraries::add_configured(const std::string& file, int depth) {
  constexpr int kDepthMax = 4;
  const std::string text = system_.read(file).value_or("");
  for (const std::string_view line : lines_in(text)) {
    const auto words = words_in(line.substr(0, line.find('#')));
    if (words.size() == 1) add(std::string(words[0]));
    if (words.size() != 2 || words[0] != "include" || depth == kDepthMax) continue;
    const std::string pattern(words[1]);
    const std::size_t slash = pattern.rfind('/'), star = pattern.find('*');
    if (slash == std::string::npos) continue;
    const std::string folder = pattern.substr(0, slash);
    const std::string ending = star == std::string::npos ? pattern.substr(slash + 1) : pattern.substr(star + 1);
    for (const std::string& name : system_.list(folder)) {
      if (name.ends_with(ending)) add_configured(folder + "/" + name, depth + 1);
    }
  }
}

std::optional<std::string> Libraries::find(const std::string& name) const {
  if (name.contains('/')) return system_.exists(name) ? std::optional(name) : std::nullopt;
  for (const std::string& folder : folders_) {
    if (system_.exists(folder + "/" + name)) return folder + "/" + name;
  }
  return std::nullopt;
}

}  // namespace tributary::cli::doctor
