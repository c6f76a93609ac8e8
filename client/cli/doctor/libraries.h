#pragma once
// Finds shared objects by the dynamic linker's configuration; it reads no program's RPATH.
#include <optional>
#include <string>
#include <vector>

#include "tributary/transport/system_tree.h"

namespace tributary::cli::doctor {

class Libraries {
 public:
  /// Returns the folders of LD_LIBRARY_PATH, the folders of /etc/ld.so.conf, and the system's own folders.
  explicit Libraries(const transport::SystemTree& system);
  /// Returns the file that dlopen(name) would open. A name with a slash is a path.
  [[nodiscard]] std::optional<std::string> find(const std::string& name) const;

 private:
  void add_configured(const std::string& file, int depth);
  void add(std::string folder);

  const transport::SystemTree& system_;
  std::vector<std::string> folders_;
};

/// Returns the value of a variable from this process's environment.
[[nodiscard]] std::optional<std::string> environment_of(const transport::SystemTree& system, const std::string& name);

}  // namespace tributary::cli::doctor
