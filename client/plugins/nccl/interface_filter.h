#pragma once
// Reads NCCL_SOCKET_IFNAME as NCCL does.
#include <string>
#include <string_view>
#include <vector>

namespace tributary::nccl {

/// A list of name prefixes, separated by commas, such as "eth,ib". After "=" the entries are whole names. After "^" all
/// other interfaces are admitted; after "^=" the entries are whole names, too. Source: NCCL's documentation of the
/// variable.
class InterfaceFilter {
 public:
  explicit InterfaceFilter(std::string text);

  /// Returns true if the variable lists no name.
  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }
  [[nodiscard]] bool admits(std::string_view interface_name) const noexcept;
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::vector<std::string> names_;
  bool excludes_ = false;
  bool whole_ = false;
};

}  // namespace tributary::nccl
