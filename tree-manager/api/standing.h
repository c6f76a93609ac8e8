#pragma once
// The state of a manager as one of the managers that share its store.
#include <cstdint>
#include <string>

namespace tributary::manager {

struct Standing {
  bool leads = true;
  bool alone = true;                     // no other manager shares its store, so it always leads
  std::string leader{};                  // URL of the leader; empty: not known, or the leader has none
  std::uint64_t fence = 0;               // number of this manager's leadership; 0: it does not lead
  std::uint64_t leaders_seen = 0;        // number of leaderships that this manager has seen since it started
  std::uint64_t passed_on = 0;           // number of requests that it passed on and the leader answered
  std::uint64_t passed_on_in_vain = 0;   // number of requests that it could not pass on, or the leader did not answer
  std::uint64_t answered_from_copy = 0;  // number of reads that it answered itself while it did not lead
};

}  // namespace tributary::manager
