#pragma once
// The ids by which the ranks of a communicator can meet again when it has failed.
#include <memory>
#include <vector>

#include "client/control/unique_id.h"

namespace tributary::client {

/// One id of each rank, in the order of the ranks. This rank's own listener is open until a communicator takes the id,
/// or this object ends.
class SpareMeetings {
 public:
  SpareMeetings(std::vector<UniqueIdBytes> ids, std::size_t own) : ids_(std::move(ids)), own_(own) {}
  SpareMeetings(const SpareMeetings&) = delete;
  SpareMeetings& operator=(const SpareMeetings&) = delete;
  ~SpareMeetings();

  [[nodiscard]] const UniqueIdBytes& of(std::size_t rank) const { return ids_.at(rank); }

 private:
  std::vector<UniqueIdBytes> ids_;
  std::size_t own_;
};

}  // namespace tributary::client
