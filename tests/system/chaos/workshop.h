#pragma once
// Tools for every test with a whole cluster: a temporary folder, a guardian, the programs' paths.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "client/cli/cluster/guardian.h"
#include "client/cli/cluster/local_cluster.h"
#include "client/cli/cluster/machine.h"

namespace tributary::chaos {

class Workshop {
 public:
  Workshop() {
    auto path = cli::make_private_folder();
    if (!path) throw std::runtime_error(path.error().message);
    folder_ = *path;
    auto guardian = cli::Guardian::start(folder_);
    if (!guardian) throw std::runtime_error(guardian.error().message);
    guardian_.emplace(std::move(*guardian));
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() {
    std::error_code ignored;
    // Keep the logs of a failed test: they say why.
    if (testing::Test::HasFailure()) {
      guardian_->keep_folder();
      show_ends_of_logs();
      std::fprintf(stderr, "logs are kept in %s\n", folder_.c_str());
    } else {
      std::filesystem::remove_all(folder_, ignored);
    }
  }

  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] const cli::Guardian* guardian() const noexcept { return &*guardian_; }
  [[nodiscard]] std::unique_ptr<cli::LocalCluster> start_cluster(const cli::ClusterShape& shape, std::uint32_t lanes,
                                                                 std::uint32_t addresses = 1,
                                                                 const std::string& manager_settings = {}) {
    auto cluster = cli::LocalCluster::start({.shape = shape,
                                             .lanes = lanes,
                                             .addresses = addresses,
                                             .folder = folder_,
                                             .manager_settings = manager_settings},
                                            guardian());
    if (!cluster) throw std::runtime_error(cluster.error().message);
    return std::move(*cluster);
  }

 private:
  /// Prints the last lines of each file, because a test may run in a virtual machine whose folders are gone afterwards.
  void show_ends_of_logs() const {
    constexpr std::uintmax_t kShown = 6000;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_, ignored)) {
      if (!entry.is_regular_file(ignored) || entry.path().extension() != ".log") continue;
      const auto size = entry.file_size(ignored);
      std::ifstream in(entry.path());
      if (size > kShown) in.seekg(static_cast<std::streamoff>(size - kShown));
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      std::fprintf(stderr, "---- the end of %s:\n%s\n", entry.path().c_str(), text.c_str());
    }
  }

  std::string folder_;
  std::optional<cli::Guardian> guardian_;
};

/// Reads a number from the environment, which makes a test longer or shorter, or repeats a run.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace tributary::chaos
