#include "service-kit/rate_limit.h"

#include <algorithm>

namespace tributary::service {

double RateLimit::left_at(const Bucket& bucket, TimePoint now) const {
  const double seconds = std::chrono::duration<double>(now - bucket.at).count();
  return std::min(2 * per_second_, bucket.left + seconds * per_second_);
}

bool RateLimit::take(const std::string& name, TimePoint now) {
  if (per_second_ == 0) return true;
  const std::lock_guard lock(mutex_);
  if (buckets_.size() >= kBucketsMax && !buckets_.contains(name)) {
    // A full bucket can be removed: a missing bucket counts as full.
    std::erase_if(buckets_, [&](const auto& one) { return left_at(one.second, now) >= 2 * per_second_; });
    if (buckets_.size() >= kBucketsMax) return false;
  }
  const auto [at, fresh] = buckets_.try_emplace(name, Bucket{.left = 2 * per_second_, .at = now});
  Bucket& bucket = at->second;
  bucket = {.left = left_at(bucket, now), .at = now};
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace tributary::service
