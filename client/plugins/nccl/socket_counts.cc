#include "client/plugins/nccl/socket_counts.h"

#include <algorithm>
#include <charconv>

namespace tributary::nccl {
namespace {

constexpr const char* kThreads = "NCCL_SOCKET_NTHREADS";
constexpr const char* kSocketsPerThread = "NCCL_NSOCKS_PERTHREAD";

struct Asked {
  std::uint32_t threads = 0;
  std::uint32_t per_thread = 1;
};

Asked usual(std::string_view vendor) {
  if (vendor == "0x1d0f") return {.threads = 2, .per_thread = 8};  // AWS
  if (vendor == "0x1ae0") return {.threads = 4, .per_thread = 1};  // Google's gVNIC
  return {};
}

void complain(std::string& complaint, const std::string& sentence) {
  complaint += (complaint.empty() ? "" : "; ") + sentence;
}

/// NCCL uses -2 for "not set".
std::uint32_t read(const char* name, const char* value, std::uint32_t otherwise, std::string& complaint) {
  if (value == nullptr) return otherwise;
  const std::string_view text(value);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) return UINT32_MAX;
  if (error == std::errc() && end == text.data() + text.size()) return number;
  if (!text.empty() && text != "-2")
    complain(complaint, std::string(name) + "=" + value + " is no number from 0 on, and counts as not set");
  return otherwise;
}

}  // namespace

bool is_possible(const SocketCounts& counts) noexcept {
  if (counts.threads == 0) return counts.sockets == 0;
  return counts.threads <= kSocketThreadsMax && counts.sockets <= kDataSocketsMax && counts.sockets >= counts.threads &&
         counts.sockets % counts.threads == 0;
}

SocketCounts socket_counts(const char* threads, const char* sockets_per_thread, std::string_view vendor,
                           std::string& complaint) {
  Asked asked = usual(vendor);
  asked.threads = read(kThreads, threads, asked.threads, complaint);
  asked.per_thread = read(kSocketsPerThread, sockets_per_thread, asked.per_thread, complaint);
  if (asked.threads > kSocketThreadsMax) {
    complain(complaint, std::string(kThreads) + " is above " + std::to_string(kSocketThreadsMax) +
                            ", and is taken as " + std::to_string(kSocketThreadsMax));
    asked.threads = kSocketThreadsMax;
  }
  if (asked.threads == 0 || asked.per_thread == 0) return {};
  if (const std::uint32_t most = kDataSocketsMax / asked.threads; asked.per_thread > most) {
    complain(complaint, std::to_string(asked.threads) + " threads may have " + std::to_string(most) +
                            " sockets each, and " + kSocketsPerThread + " is taken as that");
    asked.per_thread = most;
  }
  return {.threads = static_cast<std::uint16_t>(asked.threads),
          .sockets = static_cast<std::uint16_t>(asked.threads * asked.per_thread)};
}

}  // namespace tributary::nccl
