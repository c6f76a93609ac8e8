#pragma once
// A question to the store during a change.
#include "tree-manager/service/change_lock.h"
#include "tree-manager/store/store.h"

namespace tributary::manager {

/// Returns whether the group has ended, as the store says; readers pass meanwhile. Only the thread of the change may
/// call it.
[[nodiscard]] inline Result<bool> has_ended(ChangeLock& lock, Store& store, std::uint64_t id) {
  Result<bool> ended = false;
  if (auto ok = lock.let_readers_pass([&]() -> Status {
        ended = store.has_ended(id);
        return {};
      });
      !ok)
    return std::unexpected(ok.error());
  return ended;
}

}  // namespace tributary::manager
