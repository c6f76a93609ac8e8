#pragma once
// Gives the ranks of one host access to the same memory, over a Unix socket with an abstract name. The name is in no
// file system and ends with its last descriptor. It belongs to a network namespace: ranks that cannot meet in one
// namespace count as ranks of different hosts.
//
//   rank r -> rank 0   rank, proof of the group's secret, a descriptor of r's process, the sending end of r's inbox
//   rank 0 -> rank r   the sizes; descriptors of the memory, of all ranks' processes, of all ranks' inboxes
//   rank r -> rank 0   mapped: "this rank has mapped the memory"
//   rank 0 -> rank r   go: "all ranks have mapped the memory"
//
// A rank that gets another answer than "go" has no group. Rank 0 has a group only if all ranks have mapped the memory.
#include <chrono>
#include <memory>
#include <string>

#include "client/collectives/local/local_group.h"
#include "client/control/unique_id.h"

namespace tributary::client::local {

/// Returns a text that two ranks must have in common to meet: it names the boot of the kernel, the network namespace
/// and the user. Empty if ranks cannot meet on this system.
[[nodiscard]] std::string host_token();

/// Rank 0's side of the meeting. It listens from its creation on, so rank 0 can tell the other ranks to come at once.
class MeetingPlace {
 public:
  [[nodiscard]] static Result<MeetingPlace> open(const Secret& secret);
  /// Meets all other ranks. Blocks until all have come, for `limit` at most, or until the descriptor `stop` is
  /// readable.
  [[nodiscard]] Result<std::unique_ptr<LocalGroup>> gather(GroupSettings settings, std::chrono::milliseconds limit,
                                                           int stop = -1);

 private:
  MeetingPlace(FileDescriptor listener, const Secret& secret) : listener_(std::move(listener)), secret_(secret) {}
  FileDescriptor listener_;
  Secret secret_;
};

/// Says whether rank 0 has opened the meeting place, or may open it later, while this rank tries to come.
enum class Place : std::uint8_t { open, may_open_later };
/// Meets rank 0 at its meeting place, on any other rank. Blocks for `limit` at most, which should be longer than rank
/// 0's limit, or until the descriptor `stop` is readable.
[[nodiscard]] Result<std::unique_ptr<LocalGroup>> come(const Secret& secret, GroupSettings settings,
                                                       std::chrono::milliseconds limit, int stop = -1,
                                                       Place place = Place::open);

}  // namespace tributary::client::local
