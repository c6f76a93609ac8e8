#pragma once
// MPI_Alltoallv. Each rank knows only its own counts, so the ranks cannot choose a way by the size of the call. But
// both ranks of a message know its size: a long message goes by libtributary, and MPI carries the others.
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "client/plugins/mpi/contiguous.h"
#include "client/plugins/mpi/errors.h"
#include "client/plugins/mpi/form.h"
#include "client/plugins/mpi/job.h"

namespace tributary::mpi {

/// The messages of one call that go by libtributary.
class Exchange {
 public:
  enum class Side : bool { sends, receives };
  explicit Exchange(const Communicator& communicator) : communicator_(communicator) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Returns true, and keeps the message, if it is long enough. Both of its ranks answer alike.
  [[nodiscard]] bool take(Side side, int peer, void* begin, Count count, MPI_Datatype type);
  [[nodiscard]] bool empty() const noexcept { return messages_.empty(); }
  [[nodiscard]] std::size_t bytes_received() const noexcept;
  /// Starts all messages. Returns MPI's code.
  [[nodiscard]] int start();
  /// Waits for all messages that have started. Returns MPI's code of the first error.
  [[nodiscard]] int wait();

 private:
  struct Message {
    Side side;
    int peer;
    std::size_t elements;
    std::unique_ptr<Contiguous> data;
    tributary_request* request = nullptr;
  };
  [[nodiscard]] tributary_status start(Message& message) const;
  [[nodiscard]] int finish(Message& message) const;

  const Communicator& communicator_;
  std::vector<Message> messages_;
};

/// Returns true on all ranks if the communicator of libtributary exists, or if a message of any rank is long enough for
/// one. Collective; costs a small reduction by MPI until the communicator exists.
[[nodiscard]] bool wants_exchange(const Communicator& communicator, std::size_t longest, MPI_Comm comm);

/// The data of one side of the call, as MPI describes them.
template <class Integer, class Distance>
struct Portions {
  const void* buffer;
  const Integer* counts;
  const Distance* places;  // in elements
  MPI_Datatype type;

  [[nodiscard]] std::size_t longest(int ranks) const {
    const std::span all(counts, static_cast<std::size_t>(ranks));
    return bytes_of(static_cast<Count>(std::ranges::max(all)), type);
  }
  /// Gives the long messages to the exchange, and returns the counts of the others.
  std::vector<Integer> part(Exchange& exchange, Exchange::Side side, const Communicator& on) const {
    std::vector<Integer> others(counts, counts + on.size());
    const std::ptrdiff_t extent = Contiguous::extent_of(type);
    for (int peer = 0; peer < on.size(); ++peer) {
      const auto begin = static_cast<const std::byte*>(buffer) + static_cast<std::ptrdiff_t>(places[peer]) * extent;
      auto& count = others[static_cast<std::size_t>(peer)];
      if (exchange.take(side, peer, const_cast<std::byte*>(begin), static_cast<Count>(count), type)) count = 0;
    }
    return others;
  }
};
template <class Integer, class Distance>
Portions(const void*, const Integer*, const Distance*, MPI_Datatype) -> Portions<Integer, Distance>;

/// Carries out MPI_Alltoallv. `pass_on` makes the same call by MPI, with the program's arguments except for the counts
/// that it gets.
template <class Integer, class Distance, class PassOn>
int all_to_all_v(const Portions<Integer, Distance>& sent, const Portions<Integer, Distance>& received, MPI_Comm comm,
                 const PassOn& pass_on) {
  const std::size_t bytes = bytes_of(counts_of(received.counts, comm).sum, received.type);
  Communicator* const on = sent.buffer == MPI_IN_PLACE || job_settings() == nullptr ? nullptr : Communicator::of(comm);
  const bool wanted = on != nullptr && wants_exchange(*on, sent.longest(on->size()), comm);
  // One class for all sizes: the ranks see different ones.
  const auto choice = wanted ? on->choose(Collective::all_to_all_v, 0) : Communicator::Choice{};
  const auto begin = std::chrono::steady_clock::now();
  int code = MPI_SUCCESS;
  if (choice.way == Way::tributary) {
    Exchange exchange(*on);
    const auto counts_received = received.part(exchange, Exchange::Side::receives, *on);
    const auto counts_sent = sent.part(exchange, Exchange::Side::sends, *on);
    const bool none = exchange.empty();
    count_call(Collective::all_to_all_v, none ? Way::mpi : Way::tributary, none ? bytes : exchange.bytes_received());
    const int started = exchange.start();
    const int passed = pass_on(counts_sent.data(), counts_received.data());
    const int waited = exchange.wait();
    code = passed != MPI_SUCCESS ? passed : told(started != MPI_SUCCESS ? started : waited, comm);
  } else {
    count_call(Collective::all_to_all_v, choice.way, bytes);
    code = pass_on(sent.counts, received.counts);
  }
  if (choice.trials != nullptr) {
    choice.trials->count(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return code;
}

}  // namespace tributary::mpi
