#include "tributary/transport/link_keys.h"

#include <utility>

namespace tributary::transport {

void LinkKeys::set_peers(const LinkSecret& secret) {
  const std::lock_guard lock(mutex_);
  peers_ = secret;
}

void LinkKeys::set_derive(Derive derive) {
  const std::lock_guard lock(mutex_);
  derive_ = std::move(derive);
}

void LinkKeys::add(const LinkName& name, const LinkSecret& secret, PacketSecurity security) {
  const std::lock_guard lock(mutex_);
  links_[{name.group, name.epoch, name.lane}] = {{name, security}, secret};
}

void LinkKeys::remove(const LinkName& name) {
  const std::lock_guard lock(mutex_);
  links_.erase({name.group, name.epoch, name.lane});
}

std::optional<LinkKeys::Link> LinkKeys::to_connect(std::uint64_t group, std::uint32_t epoch, std::uint32_t lane) const {
  const std::lock_guard lock(mutex_);
  if (group == 0) {
    if (!wanted() || !peers_) return std::nullopt;
    return Link{{{}, least_}, *peers_};
  }
  const auto at = links_.find({group, epoch, lane});
  return at == links_.end() ? std::nullopt : std::optional(at->second);
}

LinkKeys::Found LinkKeys::of(const LinkName& name) const {
  Derive derive;
  {
    const std::lock_guard lock(mutex_);
    if (name.group == 0 && name == LinkName{} && peers_) return *peers_;
    if (name.group != 0) derive = derive_;
  }
  return derive ? derive(name) : std::unexpected(NoSecret::unknown);
}

}  // namespace tributary::transport
