#include "client/api/meeting.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "client/api/fork_guard.h"
#include "tributary/transport/second_way.h"

namespace tributary::client {

class Meeting::Relay final : public transport::Acceptor {
 public:
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    return target_ != nullptr ? target_->on_accept(std::move(channel)) : nullptr;
  }
  transport::Acceptor* target_ = nullptr;
};

Meeting::Meeting() : relay_(std::make_unique<Relay>()) {}
Meeting::~Meeting() = default;

void Meeting::deliver_to(transport::Acceptor& acceptor) noexcept {
  relay_->target_ = &acceptor;
}

void Meeting::change_secret(const Secret& secret) {
  id_.secret = secret;
  keys_->set_peers(link_secret_of_peers(secret));
}

Result<std::unique_ptr<Meeting>> Meeting::open(const std::string& transport, const std::string& host,
                                               const TcpWish& tcp, PacketSecurity security, const DpdkRank& dpdk,
                                               const RdmaWish& rdma, const UdpRank& udp) {
  std::unique_ptr<Meeting> meeting(new Meeting);
  meeting->keys_ = make_link_keys(transport, security);
  auto made = make_transport(transport, host, tcp, meeting->keys_, dpdk, rdma, udp);
  if (!made) return std::unexpected(made.error());
  meeting->transport_ = std::move(*made);
  auto listener = transport::lasting_way(*meeting->transport_).listen({host, 0}, *meeting->relay_);
  if (!listener) return std::unexpected(listener.error());
  meeting->listener_ = std::move(*listener);
  auto secret = random_secret();
  if (!secret) return std::unexpected(secret.error());
  meeting->id_ = {meeting->listener_->local(), *secret};
  meeting->keys_->set_peers(link_secret_of_peers(*secret));
  return meeting;
}

namespace {

struct Open {
  std::unique_ptr<Meeting> meeting;
  // The process that made the meeting. A forked child must neither use nor close its parent's listener: the two
  // processes share the kernel's object.
  std::uint64_t process;
};

struct Registry {
  std::mutex mutex;
  std::deque<Open> meetings;  // from the oldest to the newest
};

// Returns the registry. It is never destroyed: communicators may be made and ended while the process ends.
Registry& registry() {
  static Registry* const one = new Registry;
  return *one;
}

/// Returns the place of this process's meeting with this secret. The caller holds the lock.
std::deque<Open>::iterator find_open(const Secret& secret) {
  return std::ranges::find_if(registry().meetings, [&](const Open& one) {
    return one.meeting->id().secret == secret && one.process == fork_generation();
  });
}

}  // namespace

Result<UniqueIdBytes> open_meeting(const std::string& transport, const std::string& host, const TcpWish& tcp,
                                   PacketSecurity security, const DpdkRank& dpdk, const RdmaWish& rdma,
                                   const UdpRank& udp) {
  auto meeting = Meeting::open(transport, host, tcp, security, dpdk, rdma, udp);
  if (!meeting) return std::unexpected(meeting.error());
  auto bytes = encode((*meeting)->id());
  if (!bytes) return bytes;
  Open oldest{};  // closed after the lock is released
  std::lock_guard lock(registry().mutex);
  registry().meetings.push_back({std::move(*meeting), fork_generation()});
  if (registry().meetings.size() > kMeetingsMax) {
    oldest = std::move(registry().meetings.front());
    registry().meetings.pop_front();
    if (oldest.process != fork_generation()) static_cast<void>(oldest.meeting.release());
  }
  return bytes;
}

std::unique_ptr<Meeting> take_meeting(const UniqueId& id) {
  std::lock_guard lock(registry().mutex);
  const auto found = find_open(id.secret);
  if (found == registry().meetings.end()) return nullptr;
  auto meeting = std::move(found->meeting);
  registry().meetings.erase(found);
  return meeting;
}

void change_secret(const Secret& from, const Secret& to) {
  std::lock_guard lock(registry().mutex);
  const auto found = find_open(from);
  if (found != registry().meetings.end()) found->meeting->change_secret(to);
}

}  // namespace tributary::client
