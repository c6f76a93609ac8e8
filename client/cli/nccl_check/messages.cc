#include "client/cli/nccl_check/messages.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "client/cli/nccl_check/link.h"
#include "client/cli/nccl_check/registered.h"

namespace tributary::cli::nccl_check {
namespace {

constexpr std::size_t kInFlightMax = 8;  // NCCL's number of steps
constexpr std::size_t kSlack = 100;      // bytes by which the receive buffer is longer than the message
constexpr std::size_t kSmallMax = 65536;
constexpr std::array<std::size_t, 12> kSizes{
    8, 0, 1, 3, 64, 4095, 4096, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 7, 5 << 20};

std::byte pattern(int from, int to, int number, std::size_t message, std::size_t index) {
  return static_cast<std::byte>(index * 7 + index / 509 + message * 13 +
                                static_cast<std::size_t>(from * 5 + to * 3 + number));
}

int tag_of(int from, int number) {
  return from * 100 + number - 50;
}

/// One direction of one link, from its first message to its last. As in NCCL, small messages are in one region, which
/// is registered before the first message; large messages are in memory that is registered between messages.
class Stream {
 public:
  Stream(Session& session, const Link& link, bool sends)
      : session_(session),
        link_(link),
        sends_(sends),
        messages_(kSizes.size() * static_cast<std::size_t>(session.options().message_rounds)),
        region_(std::make_unique<Registered>(session, comm(), kInFlightMax * kPlaceBytes)) {}

  /// Makes progress. Returns true while messages are left.
  bool move() {
    while (next_ < messages_ && flights_.size() < kInFlightMax && post()) {
    }
    if (!flights_.empty()) poll();
    return next_ < messages_ || !flights_.empty();
  }

 private:
  static constexpr std::size_t kPlaceBytes = kSmallMax + 128;
  static_assert(kPlaceBytes >= kSmallMax + kSlack);

  struct Flight {
    std::size_t message = 0;
    std::span<std::byte> buffer;
    void* memory = nullptr;
    std::unique_ptr<Registered> own;  // registration of a large message's memory
    void* request = nullptr;
  };

  [[nodiscard]] void* comm() const { return sends_ ? link_.send_comm : link_.receive_comm; }
  [[nodiscard]] int from() const { return sends_ ? session_.rank() : link_.peer; }
  [[nodiscard]] int to() const { return sends_ ? link_.peer : session_.rank(); }
  [[nodiscard]] static std::size_t size_of(std::size_t message) { return kSizes[message % kSizes.size()]; }

  Flight prepare() {
    Flight flight;
    flight.message = next_;
    const std::size_t room = size_of(next_) + (sends_ ? 0 : kSlack);
    if (size_of(next_) > kSmallMax) {
      flight.own = std::make_unique<Registered>(session_, comm(), room);
      flight.buffer = flight.own->bytes();
      flight.memory = flight.own->memory();
    } else {
      flight.buffer = region_->bytes().subspan(next_ % kInFlightMax * kPlaceBytes, room);
      flight.memory = region_->memory();
    }
    return flight;
  }

  bool post() {
    if (!waiting_) waiting_.emplace(prepare());
    Flight& flight = *waiting_;
    const int tag = tag_of(from(), link_.number);
    if (sends_) {
      for (std::size_t i = 0; i < flight.buffer.size(); ++i) {
        flight.buffer[i] = pattern(from(), to(), link_.number, next_, i);
      }
      require_success(session_.net().send(link_.send_comm, flight.buffer.data(), flight.buffer.size(), tag,
                                          flight.memory, &flight.request),
                      "isend");
    } else {
      flight.request = reinterpret_cast<void*>(1);  // NCCL's value for "completion is optional"
      require_success(session_.net().receive(link_.receive_comm, flight.buffer.data(), flight.buffer.size(), tag,
                                             flight.memory, &flight.request),
                      "irecv");
    }
    if (flight.request == nullptr) return false;
    flights_.push_back(std::move(flight));
    waiting_.reset();
    ++next_;
    return true;
  }

  void poll() {
    int done = 7, size = -1;
    Flight& first = flights_.front();
    require_success(session_.net().test(first.request, &done, &size), "net test");
    require(done == 0 || done == 1, "test did not write done");
    if (done == 0) return;
    require(size == static_cast<int>(size_of(first.message)), "test gave the wrong size");
    if (!sends_) check(first);
    flights_.pop_front();
  }

  void check(const Flight& flight) {
    for (std::size_t i = 0; i < size_of(flight.message); ++i) {
      if (flight.buffer[i] == pattern(from(), to(), link_.number, flight.message, i)) continue;
      throw Failure("message " + std::to_string(flight.message) + " from rank " + std::to_string(from()) +
                    " is wrong at byte " + std::to_string(i));
    }
    void* request = nullptr;
    require_success(session_.net().flush(link_.receive_comm, nullptr, 0, nullptr, &request), "net iflush");
    int done = 0;
    if (request != nullptr) require_success(session_.net().test(request, &done, nullptr), "test of a flush");
  }

  Session& session_;
  const Link link_;
  const bool sends_;
  const std::size_t messages_;
  std::unique_ptr<Registered> region_;
  std::size_t next_ = 0;
  std::optional<Flight> waiting_;  // a message for which the plugin had no room so far
  std::deque<Flight> flights_;
};

}  // namespace

void check_messages(Session& session) {
  if (session.ranks() < 2) return;
  auto links = make_links(session, session.options().connections);
  std::vector<Stream> streams;
  session.service().run([&] {
    for (const Link& link : links) {
      streams.emplace_back(session, link, true);
      streams.emplace_back(session, link, false);
    }
  });
  say(session.rank(), "messages: the connections are open");
  session.progress().run([&] {
    // On every other rank, send first and receive late: messages that come meanwhile wait in the sockets.
    const int late = session.rank() % 2 == 0 ? 200 : 0;
    for (int turn = 0, busy = 1; busy != 0; ++turn) {
      busy = 0;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        const bool waits = turn < late && i % 2 == 1;
        if (waits || streams[i].move()) busy = 1;
      }
      std::this_thread::yield();
    }
  });
  // Close each rank when its own part is done, as NCCL does: messages that are still on their way must arrive.
  const std::size_t messages =
      links.size() * kSizes.size() * static_cast<std::size_t>(session.options().message_rounds);
  session.service().run([&] { streams.clear(); });
  close_links(session, links);
  say(session.rank(), "messages: " + std::to_string(links.size()) + " connections each way, " +
                          std::to_string(messages) + " messages each way, all exact");
}

}  // namespace tributary::cli::nccl_check
