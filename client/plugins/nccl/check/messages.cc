#include "client/plugins/nccl/check/messages.h"

#include <algorithm>
#include <array>
#include <deque>
#include <thread>

#include "client/plugins/nccl/check/link.h"

namespace tributary::nccl::check {
namespace {

constexpr std::size_t kInFlightMax = 8;  // NCCL's steps
constexpr std::array<std::size_t, 12> kSizes{
    8, 0, 1, 3, 64, 4095, 4096, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 7, 5 << 20};

std::byte pattern(int from, int to, int number, std::size_t message, std::size_t index) {
  return static_cast<std::byte>(index * 7 + index / 509 + message * 13 +
                                static_cast<std::size_t>(from * 5 + to * 3 + number));
}

int tag_of(int from, int number) {
  return from * 100 + number - 50;
}

/// One direction of one link, from its first message to its last.
class Stream {
 public:
  Stream(Session& session, const Link& link, bool sends) : session_(session), link_(link), sends_(sends) {}

  /// True while there is something left to do.
  bool move() {
    while (next_ < kSizes.size() && flights_.size() < kInFlightMax && post()) {
    }
    if (!flights_.empty()) poll();
    return next_ < kSizes.size() || !flights_.empty();
  }

 private:
  struct Flight {
    std::size_t message = 0;
    std::vector<std::byte> buffer;
    void* request = nullptr;
  };

  [[nodiscard]] int from() const { return sends_ ? session_.rank() : link_.peer; }
  [[nodiscard]] int to() const { return sends_ ? link_.peer : session_.rank(); }

  bool post() {
    Flight flight;
    flight.message = next_;
    const std::size_t size = kSizes[next_];
    const int tag = tag_of(from(), link_.number);
    if (sends_) {
      flight.buffer.resize(size);
      for (std::size_t i = 0; i < size; ++i) flight.buffer[i] = pattern(from(), to(), link_.number, next_, i);
      require_success(session_.net().send(link_.send_comm, flight.buffer.data(), size, tag, nullptr, &flight.request),
                      "isend");
    } else {
      flight.buffer.resize(size + 100);             // more room than there is message
      flight.request = reinterpret_cast<void*>(1);  // NCCL's word for "completion is optional"
      require_success(session_.net().receive(link_.receive_comm, flight.buffer.data(), flight.buffer.size(), tag,
                                             nullptr, &flight.request),
                      "irecv");
    }
    if (flight.request == nullptr) return false;
    flights_.push_back(std::move(flight));
    ++next_;
    return true;
  }

  void poll() {
    int done = 7, size = -1;
    Flight& first = flights_.front();
    require_success(session_.net().test(first.request, &done, &size), "net test");
    require(done == 0 || done == 1, "test did not write done");
    if (done == 0) return;
    require(size == static_cast<int>(kSizes[first.message]), "test gave the wrong size");
    if (!sends_) check(first);
    flights_.pop_front();
  }

  void check(const Flight& flight) {
    for (std::size_t i = 0; i < kSizes[flight.message]; ++i) {
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
  std::size_t next_ = 0;
  std::deque<Flight> flights_;
};

}  // namespace

void check_messages(Session& session) {
  if (session.ranks() < 2) return;
  auto links = make_links(session, session.options().connections);
  session.progress().run([&] {
    std::vector<Stream> streams;
    for (const Link& link : links) {
      streams.emplace_back(session, link, true);
      streams.emplace_back(session, link, false);
    }
    // Every other rank sends first and receives late: what comes meanwhile waits in the sockets.
    const int late = session.rank() % 2 == 0 ? 200 : 0;
    for (int turn = 0, busy = 1; busy != 0; ++turn) {
      busy = 0;
      for (std::size_t i = 0; i < streams.size(); ++i) {
        if (turn < late && i % 2 == 1) {
          busy = 1;
        } else if (streams[i].move()) {
          busy = 1;
        }
      }
      std::this_thread::yield();
    }
  });
  session.bootstrap().barrier();
  close_links(session, links);
  say(session.rank(), "messages: " + std::to_string(links.size()) + " connections each way, " +
                          std::to_string(links.size() * kSizes.size()) + " messages each way, all exact");
}

}  // namespace tributary::nccl::check
