#pragma once
// The files in /sys and /proc of this host, or in a tree that a test has made.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tributary::transport {

class SystemTree {
 public:
  /// `root` is put in front of every path; "" is this host.
  explicit SystemTree(std::string root = "") : root_(std::move(root)) {}
  /// A file's text without the last newline; empty if the file cannot be read.
  [[nodiscard]] std::optional<std::string> read(const std::string& path) const;
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;
  /// The sorted names in a folder; empty if there is no such folder.
  [[nodiscard]] std::vector<std::string> list(const std::string& path) const;
  /// The final target of a link, without the root; "" if the target does not exist.
  [[nodiscard]] std::string resolved(const std::string& path) const;

 private:
  std::string root_;
};

}  // namespace tributary::transport
