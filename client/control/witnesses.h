#pragma once
// Ranks of one host look at each other's processes: a rank that is stopped, or waits for a processor, does not answer
// for itself. Rank 0 knows the processes of all ranks, and tells each rank those that it may have to look at.
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tributary::client {

/// A process, as others on its host see it.
struct ProcessPlace {
  std::string space{};  // host and namespace of the number; empty: not known
  pid_t number = 0;
};
/// Returns this process.
[[nodiscard]] ProcessPlace own_process_place();

struct NeighbourProcess {
  std::uint32_t rank = 0;
  pid_t process = 0;
  friend bool operator==(const NeighbourProcess&, const NeighbourProcess&) = default;
};

/// On rank 0: the witnesses of each rank are the next kWitnessesMax ranks of its host in another process, and after the
/// last rank come the first ones.
class Witnesses {
 public:
  void learn(std::uint32_t rank, const ProcessPlace& place);
  /// Returns the ranks that look at this rank's process.
  [[nodiscard]] std::vector<std::uint32_t> of(std::uint32_t rank) const;
  /// Returns the processes at which this rank looks.
  [[nodiscard]] std::vector<NeighbourProcess> seen_by(std::uint32_t rank) const;

 private:
  using Processes = std::map<std::uint32_t, pid_t>;  // by rank
  std::map<std::string, Processes> spaces_;
  std::map<std::uint32_t, std::string> space_of_;
};

}  // namespace tributary::client
