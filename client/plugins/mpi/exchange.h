#pragma once
// MPI_Alltoallv and MPI_Ialltoallv. Each rank knows only its own counts, so the ranks cannot choose a way by the size of the call. But
// both ranks of a message know its size: a long message goes by libtributary, and MPI carries the others.
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "client/plugins/mpi/contiguous.h"
#include "client/plugins/mpi/errors.h"
#include "client/plugins/mpi/form.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/nonblocking.h"

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
  /// Waits for all messages that have started, and turns MPI meanwhile. Returns MPI's code of the first error.
  [[nodiscard]] int wait();
  /// Looks whether all messages have ended, as Ended says (nonblocking.h).
  [[nodiscard]] std::optional<int> ended(std::int64_t nanoseconds);

 private:
  struct Message {
    Side side;
    int peer;
    std::size_t elements;
    std::unique_ptr<Contiguous> data;
    tributary_request* request = nullptr;
  };
  [[nodiscard]] tributary_status start(Message& message) const;
  [[nodiscard]] int finish(Message& message, tributary_status status) const;

  const Communicator& communicator_;
  std::vector<Message> messages_;
  int code_ = MPI_SUCCESS;  // of the first message that has failed
};

/// Chooses the way of a blocking call with this longest message on this rank. May be collective.
[[nodiscard]] Communicator::Choice choose_exchange(Communicator& communicator, std::size_t longest);

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
  const auto choice = on == nullptr ? Communicator::Choice{} : choose_exchange(*on, sent.longest(on->size()));
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

/// The parts of a nonblocking call. MPI reads the counts until its own part has ended.
template <class Integer>
class ExchangeUnderWay {
 public:
  explicit ExchangeUnderWay(const Communicator& on) : exchange(on) {}
  Exchange exchange;
  std::vector<Integer> sent, received;
  MPI_Request others = MPI_REQUEST_NULL;  // the messages that MPI carries

  /// Looks whether all messages have ended, as Ended says. Only then may this object end.
  [[nodiscard]] std::optional<int> ended(std::int64_t nanoseconds) {
    const auto code = exchange.ended(nanoseconds);
    int done = 0;
    const int looked =
        nanoseconds < 0 ? PMPI_Wait(&others, MPI_STATUS_IGNORE) : PMPI_Test(&others, &done, MPI_STATUS_IGNORE);
    if (looked != MPI_SUCCESS) {
      of_others_ = looked;
      others = MPI_REQUEST_NULL;
    }
    if (!code || others != MPI_REQUEST_NULL) return std::nullopt;
    return *code != MPI_SUCCESS ? *code : of_others_;
  }

 private:
  int of_others_ = MPI_SUCCESS;
};

/// Carries out MPI_Ialltoallv. `pass_on` makes the same call by MPI with the counts and the request that it gets. The way
/// is that of the blocking calls before.
template <class Integer, class Distance, class PassOn>
int start_all_to_all_v(const Portions<Integer, Distance>& sent, const Portions<Integer, Distance>& received,
                       MPI_Comm comm, MPI_Request* request, const PassOn& pass_on) {
  Communicator* const on = sent.buffer == MPI_IN_PLACE || job_settings() == nullptr ? nullptr : Communicator::of(comm);
  if (on != nullptr && on->way_without_waiting(Collective::all_to_all_v, on->longest_message()) == Way::tributary) {
    const auto parts = std::make_shared<ExchangeUnderWay<Integer>>(*on);
    parts->received = received.part(parts->exchange, Exchange::Side::receives, *on);
    parts->sent = sent.part(parts->exchange, Exchange::Side::sends, *on);
    if (!parts->exchange.empty()) {
      count_call(Collective::all_to_all_v, Way::tributary, parts->exchange.bytes_received());
      const int started = parts->exchange.start();
      const int passed = pass_on(parts->sent.data(), parts->received.data(), &parts->others);
      if (passed != MPI_SUCCESS || started != MPI_SUCCESS) {
        static_cast<void>(parts->ended(-1));  // the messages that have started use the buffers
        return passed != MPI_SUCCESS ? passed : told(started, comm);
      }
      return make_request([parts](std::int64_t nanoseconds) { return parts->ended(nanoseconds); }, on->tributary(),
                          request);
    }
  }
  count_call(Collective::all_to_all_v, Way::mpi, bytes_of(counts_of(received.counts, comm).sum, received.type));
  return pass_on(sent.counts, received.counts, request);
}

}  // namespace tributary::mpi
