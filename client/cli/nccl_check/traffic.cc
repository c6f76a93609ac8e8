#include "client/cli/nccl_check/traffic.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tributary::cli::nccl_check {
namespace {

constexpr const char* kVariable = "TRIBUTARY_NCCL_METRICS";

}  // namespace

Traffic::Traffic() {
  const std::string pid = std::to_string(getpid());
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0') {
    file_ = named;
    if (const auto at = file_.find("%p"); at != std::string::npos) file_.replace(at, 2, pid);
    return;
  }
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  file_ = ((failed ? std::filesystem::path("/tmp") : folder) / ("tributary-nccl-check-" + pid + ".prom")).string();
  own_ = true;
  setenv(kVariable, file_.c_str(), 1);
}

Traffic::~Traffic() {
  if (own_) std::remove(file_.c_str());
}

Traffic::Bytes Traffic::read() const {
  Bytes bytes;
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const auto value = [&] { return std::strtoull(line.c_str() + line.rfind(' ') + 1, nullptr, 10); };
    if (line.starts_with("tributary_nccl_in_network_bytes_total{")) bytes.in_network = value();
    if (line.starts_with("tributary_nccl_fallback_bytes_total{")) bytes.between_ranks = value();
    if (line.starts_with("tributary_nccl_local_bytes_total{")) bytes.in_shared_memory = value();
  }
  return bytes;
}

std::string to_string(const Traffic::Bytes& bytes) {
  const double all = static_cast<double>(bytes.in_network + bytes.between_ranks + bytes.in_shared_memory);
  const double percent = all == 0 ? 0 : 100 * static_cast<double>(bytes.in_network) / all;
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "bytes in-network %llu (%.1f %%), between ranks %llu, in shared memory %llu",
                static_cast<unsigned long long>(bytes.in_network), percent,
                static_cast<unsigned long long>(bytes.between_ranks),
                static_cast<unsigned long long>(bytes.in_shared_memory));
  return text.data();
}

}  // namespace tributary::cli::nccl_check
