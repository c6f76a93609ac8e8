#pragma once
// A bucket for each name, such as an identity or an address: it allows `per_second` requests a second, and twice as
// many at once. So no name takes a server's time from the other names.
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tributary::service {

/// Any thread may call it.
class RateLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kBucketsMax = 65536;

  /// `per_second` 0: no limit.
  explicit RateLimit(std::uint64_t per_second) : per_second_(static_cast<double>(per_second)) {}
  /// Takes one request out of the bucket. Returns false if it is empty.
  [[nodiscard]] bool take(const std::string& name, TimePoint now);

 private:
  struct Bucket {
    double left = 0;
    TimePoint at;
  };
  [[nodiscard]] double left_at(const Bucket& bucket, TimePoint now) const;

  const double per_second_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace tributary::service
