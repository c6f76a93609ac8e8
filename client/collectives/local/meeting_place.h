#pragma once
// How the ranks of one host get access to the same memory: over a Unix socket with an abstract name, which is in no
// file system and ends with its last descriptor. Such names belong to a network namespace: ranks that cannot meet there
// count as ranks of different hosts.
//
//   rank r -> rank 0   rank, proof of the group's secret, a descriptor of r's process, the end of r's inbox
//   rank 0 -> rank r   the sizes, the memory, all ranks' processes, all ranks' inboxes
//   rank r -> rank 0   mapped
//   rank 0 -> rank r   all have: go
//
// A rank that gets any other answer than "go" has no group, and rank 0 has one only if all ranks have.
#include <chrono>
#include <memory>
#include <string>

#include "client/collectives/local/local_group.h"
#include "client/control/unique_id.h"

namespace tributary::client::local {

/// Names what two ranks must have in common to meet: the boot of the kernel, the network namespace, the user. Empty if
/// this system lacks what a meeting needs.
[[nodiscard]] std::string host_token();

/// Rank 0's side. It listens from its creation on, so that the others can be told to come.
class MeetingPlace {
 public:
  [[nodiscard]] static Result<MeetingPlace> open(const Secret& secret);
  /// Blocks until all ranks have come, at most for `limit`, or until the descriptor `stop` can be read.
  [[nodiscard]] Result<std::unique_ptr<LocalGroup>> gather(GroupSettings settings, std::chrono::milliseconds limit,
                                                           int stop = -1);

 private:
  MeetingPlace(FileDescriptor listener, const Secret& secret) : listener_(std::move(listener)), secret_(secret) {}
  FileDescriptor listener_;
  Secret secret_;
};

/// States that rank 0 has opened the meeting place, or that it may still do so while this rank comes.
enum class Place : std::uint8_t { open, may_open_later };
/// Meets rank 0 there, for any other rank. Blocks at most for `limit`, which should be longer than rank 0's, or until
/// the descriptor `stop` can be read.
[[nodiscard]] Result<std::unique_ptr<LocalGroup>> come(const Secret& secret, GroupSettings settings,
                                                       std::chrono::milliseconds limit, int stop = -1,
                                                       Place place = Place::open);

}  // namespace tributary::client::local
