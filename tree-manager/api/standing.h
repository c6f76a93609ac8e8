#pragma once
// The part that a manager has among those that share its store.
#include <cstdint>
#include <string>

namespace tributary::manager {

struct Standing {
  bool leads = true;
  bool alone = true;                     // it shares its store with nobody, and so always leads
  std::string leader{};                  // URL of the manager that leads; empty: not known, or it has none
  std::uint64_t fence = 0;               // number of this manager's leadership; 0: it does not lead
  std::uint64_t leaders_seen = 0;        // leaderships that it has seen since it started
  std::uint64_t passed_on = 0;           // requests that the leader answered through it
  std::uint64_t passed_on_in_vain = 0;   // requests that it could not pass on, or that the leader did not answer
  std::uint64_t answered_from_copy = 0;  // reads that it answered itself although it did not lead
};

}  // namespace tributary::manager
