#include "transport/ethernet/path_mtu.h"

#include <algorithm>

namespace tributary::transport::ethernet {

bool PathMtu::told(const IpAddress& ip, std::uint32_t bytes, TimePoint now) {
  if (bytes < (is_ipv4(ip) ? kIpv4Least : kIpv6Least)) return false;
  const std::lock_guard lock(mutex_);
  auto path = std::ranges::find(paths_, ip, &Path::ip);
  if (path == paths_.end()) path = std::ranges::min_element(paths_, {}, &Path::told_at);
  *path = {ip, bytes, now};
  any_.store(true, std::memory_order_release);
  return true;
}

std::uint32_t PathMtu::get(const IpAddress& ip, std::uint32_t link, TimePoint now) const {
  if (!any_.load(std::memory_order_acquire)) return link;
  const std::lock_guard lock(mutex_);
  const auto path = std::ranges::find(paths_, ip, &Path::ip);
  if (path == paths_.end() || now - path->told_at > kBelieved) return link;
  return std::min(link, path->bytes);
}

}  // namespace tributary::transport::ethernet
