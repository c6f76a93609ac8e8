#pragma once
// The part of this library that belongs to one communicator of MPI, kept as an attribute of it.
#include <tributary/tributary.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/plugins/mpi/absence.h"
#include "client/plugins/mpi/mpi.h"
#include "client/plugins/mpi/report.h"
#include "client/plugins/mpi/trials.h"

namespace tributary::mpi {

/// Decides which way the calls on a communicator go, and has libtributary's communicator with the same ranks.
///
/// All ranks must decide alike. So a decision follows only from facts that are equal on all ranks: settings of rank 0,
/// collective, size, number of earlier calls, and results that the ranks have exchanged by MPI on this communicator.
/// Programs call collectives of one communicator in the same order on all ranks, never on two threads at once. The lock
/// protects only the making of the attribute, and the list of all communicators.
class Communicator {
 public:
  /// Makes the key of the attributes. Returns false if MPI refuses.
  [[nodiscard]] static bool prepare();
  /// Returns the communicator's part; nullptr if its calls always go by MPI (one rank, inter-communicator, ranks that
  /// MPI has spawned). Makes the part on the first call, which needs no other rank.
  [[nodiscard]] static Communicator* of(MPI_Comm comm);
  /// Ends all communicators of libtributary, in the order in which they were made. Collective.
  static void end_all();

  explicit Communicator(MPI_Comm comm);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() = default;

  struct Choice {
    Way way = Way::mpi;
    Trials* trials = nullptr;  // the caller measures the call, and counts it here
  };
  /// Counts a blocking call that may go by Tributary, before choose(). Returns true if it goes by MPI, because the ranks
  /// look for the manager again only in a later call.
  [[nodiscard]] bool waits_for_manager() noexcept;
  /// Chooses the way of a blocking call. May make libtributary's communicator, and may agree: both are collective.
  [[nodiscard]] Choice choose(Collective collective, std::uint64_t bytes);
  /// Returns the way of a nonblocking call. Waits for no other rank: Tributary's way needs a communicator and a
  /// decision that earlier blocking calls have made.
  [[nodiscard]] Way way_without_waiting(Collective collective, std::uint64_t bytes) const;
  /// Counts a call whose longest message on this rank has this many bytes, and returns the longest message of all ranks,
  /// as LongestMessage says. May be collective.
  [[nodiscard]] std::uint64_t longest_message(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t longest_message() const noexcept { return longest_.everywhere(); }
  /// Gives a persistent request a communicator of libtributary of its own, with the same ranks: MPI lets each
  /// rank start its persistent requests in an order of its own. Returns nullptr if the request goes by MPI. Collective.
  [[nodiscard]] tributary_comm* reserve(Collective collective, std::uint64_t bytes);
  /// Takes back a communicator that reserve() has given, for a later request. Waits for no other rank.
  void release(tributary_comm* reserved);

  /// Ends libtributary's communicators with these ranks, because their settings have changed: the next call makes
  /// others. Collective.
  void renew();

  [[nodiscard]] tributary_comm* tributary() const noexcept { return tributary_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool has(int rank) const noexcept { return rank >= 0 && rank < size_; }

 private:
  enum class State : std::uint8_t {
    passed,  // all calls go by MPI
    unmade,  // libtributary has no communicator yet, or waits for the manager
    made,
  };
  static int deleted(MPI_Comm comm, int key, void* attribute, void* extra);
  [[nodiscard]] bool inside_the_world() const;
  void make_first();
  [[nodiscard]] tributary_comm* make();
  [[nodiscard]] bool room_everywhere() const;
  [[nodiscard]] tributary_comm* join(const tributary_unique_id& id);
  [[nodiscard]] std::uint64_t unused() const;
  void agree(Trials& trials) const;
  void end();

  const MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  State state_ = State::unmade;
  tributary_comm* tributary_ = nullptr;
  struct Reserved {
    tributary_comm* comm;
    bool used;  // by a request of this rank
  };
  std::vector<Reserved> reserved_;  // equally many on all ranks; the registry's lock protects it
  bool refused_ = false;            // reserve() could make no communicator, and tries no more
  Absence absence_;                 // of the manager; while it lasts, make() tries only at some calls
  std::array<std::array<Trials, kClasses>, kCollectives> trials_;
  LongestMessage longest_;
};

}  // namespace tributary::mpi
