#include "client/plugins/nccl/p2p/handle_keys.h"

#include <algorithm>
#include <cstring>

#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

/// The group that stands for the handle in a connection's first frame. It says nothing about the secret.
std::uint64_t group_of(const Secret& handle) {
  const Secret name = client::derived(handle, "nccl link name", 0);
  std::uint64_t group = 0;
  std::memcpy(&group, name.data(), sizeof group);
  return group | 1U;  // 0 stands for no group
}

LinkSecret link_secret_of(const Secret& handle) {
  const Secret secret = client::derived(handle, "nccl link", 0);
  LinkSecret link{};
  std::copy_n(secret.begin(), link.size(), link.begin());
  return link;
}

}  // namespace

HandleKeys::HandleKeys(PacketSecurity security) : security_(security) {
  if (security_ == PacketSecurity::off) return;
  keys_ = std::make_shared<transport::LinkKeys>(security_);
  keys_->set_derive([listening = listening_](const LinkName& name) -> transport::LinkKeys::Found {
    const auto known = listening->find(name.group);
    if (known == listening->end() || name != LinkName{.group = name.group})
      return std::unexpected(transport::NoSecret::unknown);
    return known->second;
  });
}

void HandleKeys::listen(const Secret& handle) {
  if (keys_) listening_->insert_or_assign(group_of(handle), link_secret_of(handle));
}

void HandleKeys::stop_listening(const Secret& handle) {
  if (keys_) listening_->erase(group_of(handle));
}

std::uint64_t HandleKeys::connect(const Secret& handle) {
  if (!keys_) return 0;
  const LinkName name{.group = group_of(handle)};
  keys_->add(name, link_secret_of(handle), security_);
  ++connecting_[name.group];
  return name.group;
}

void HandleKeys::connected(const Secret& handle) {
  if (!keys_) return;
  const LinkName name{.group = group_of(handle)};
  const auto known = connecting_.find(name.group);
  TRIBUTARY_ASSERT(known != connecting_.end(), "a connection was made to a handle without a key");
  if (--known->second > 0) return;
  connecting_.erase(known);
  keys_->remove(name);
}

}  // namespace tributary::nccl
