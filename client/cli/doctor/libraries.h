#pragma once
// Finds shared objects as the dynamic linker does, by its configuration; reads no program's RPATH.
#include <optional>
#include <string>
#include <vector>

#include "tributary/transport/system_tree.h"

namespace tributary::cli::doctor {

class Libraries {
 public:
  /// Looks in LD_LIBRARY_PATH, the folders of /etc/ld.so.conf, and the system's own.
  explicit Libraries(const transport::SystemTree& system);
  /// Returns the file that dlopen(name) would open. A name with a slash is a path.
  [[nodiscard]] std::optional<std::string> find(const std::string& name) const;

 private:
  void add_configured(const std::string& file, int depth);
  void add(std::string folder);

  const transport::SystemTree& system_;
  std::vector<std::string> folders_;
};

/// Returns the variable, from this process's environment.
[[nodiscard]] std::optional<std::string> environment_of(const transport::SystemTree& system, const std::string& name);

}  // namespace tributary::cli::doctor
