#include "client/api/http_group_service.h"

#include <pthread.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tributary/manager_client/manager_client.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::client {
namespace {

using manager_client::GroupAnswer;
using manager_client::ManagerClient;

constexpr std::chrono::milliseconds kConnectLimit{2000};
constexpr std::chrono::milliseconds kRequestLimit{10000};
constexpr std::chrono::milliseconds kReleaseLimit{1500};

using Tls = std::shared_ptr<service::TlsContext>;

ManagerClient make_client(const HttpGroupServiceSettings& settings, const Tls& tls, std::chrono::milliseconds limit) {
  auto client = ManagerClient::create({.url = settings.url,
                                       .token = settings.token,
                                       .connect_limit = std::min(kConnectLimit, limit),
                                       .request_limit = limit,
                                       .tls = tls,
                                       .fresh_token = settings.fresh_token});
  return std::move(client).value();  // create() has checked this URL
}

/// Returns the error for the coordinator. If the manager has forgotten the group, or has it at another epoch, this is
/// Errc::bad_argument: the coordinator then asks for a new group.
Error translate(Error error) {
  if (error.code == Errc::peer_gone || error.code == Errc::mismatch) error.code = Errc::bad_argument;
  return error;
}

/// Makes a name that no other process has. The name and the number of the attempt identify a request.
std::string make_request_name() {
  std::array<std::byte, 16> bytes{};
  return random_bytes(bytes) ? to_hex(bytes) : "";
}

bool may_be_forgotten(Errc code) {
  return code == Errc::peer_gone || code == Errc::mismatch;
}

/// The record that the manager signed with the newest trees. With this record, a manager takes the group in again after
/// it stood still for long, or restarted without its store or with an older store. Only the helper thread uses it.
class KeptRecord {
 public:
  void note_hosts(const std::vector<std::string>& hosts) { hosts_ = hosts; }

  Result<GroupDescriptor> take(Result<GroupAnswer> answer) {
    if (!answer) return std::unexpected(translate(std::move(answer.error())));
    if (!answer->record.empty()) {
      group_ = answer->descriptor.group;
      epoch_ = answer->descriptor.epoch;
      note_record(std::move(answer->record));
    }
    return std::move(answer->descriptor);
  }

  Result<manager_client::GroupLease> renew(ManagerClient& client, std::uint64_t group,
                                           const manager_client::GroupTraffic& traffic) {
    const bool want_record = group == group_ && Clock::now() - taken_at_ >= kRecordAge;
    auto lease = client.renew_group(group, want_record, traffic);
    if (lease && lease->known && !lease->record.empty()) note_record(std::move(lease->record));
    const bool lost = lease && (!lease->known || lease->epoch < epoch_);
    return lost && group == group_ ? client.adopt_group(group_, record_, hosts_) : lease;
  }

  /// Returns true if the manager knows the group now.
  bool adopted(ManagerClient& client, std::uint64_t group) {
    if (group != group_) return false;
    const auto lease = client.adopt_group(group_, record_, hosts_);
    return lease && lease->known;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::hours kRecordAge{6};  // much less than the days for which the manager accepts a record

  void note_record(std::string record) {
    record_ = std::move(record);
    taken_at_ = Clock::now();
  }

  std::vector<std::string> hosts_;
  std::uint64_t group_ = 0;  // the record's group; 0: there is no record
  std::uint32_t epoch_ = 0;
  std::string record_;
  Clock::time_point taken_at_;
};

}  // namespace

struct HttpGroupService::Impl {
  using Task = std::move_only_function<void(ManagerClient&)>;

  Impl(HttpGroupServiceSettings with, Tls files, transport::Transport& answers_on)
      : settings(std::move(with)),
        tls(std::move(files)),
        request_name(make_request_name()),
        transport(answers_on),
        client(make_client(settings, tls, kRequestLimit)) {
    const transport::BlockedSignals blocked;
    thread = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
      tasks.clear();
    }
    client.cancel();
    changed.notify_all();
    thread.join();
  }

  void add(Task task) {
    {
      std::lock_guard lock(mutex);
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }

  /// Calls `answer` with `result` on the transport's thread, unless the service has ended by then.
  template <class Answer, class Value>
  void tell(Answer answer, Value result) {
    transport.post([alive = std::weak_ptr(alive), answer = std::move(answer), result = std::move(result)]() mutable {
      if (!alive.expired()) answer(std::move(result));
    });
  }

  void run() {
    pthread_setname_np(pthread_self(), "tributary-http");
    while (auto task = next_task()) (*task)(client);
    give_back();
  }

  std::optional<Task> next_task() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return stopping || !tasks.empty(); });
    if (stopping) return std::nullopt;
    Task task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }

  // Gives back some of the released groups. The others return to the manager when their leases end.
  void give_back() {
    if (released.empty()) return;
    ManagerClient last =
        make_client(settings, tls, kReleaseLimit / static_cast<int>(std::min<std::size_t>(released.size(), 4)));
    for (std::size_t i = 0; i < released.size() && i < 4; ++i) {
      static_cast<void>(last.delete_group(released[i].group, released[i].lost));
    }
  }

  const HttpGroupServiceSettings settings;
  const Tls tls;                   // null: the manager does not speak HTTPS
  const std::string request_name;  // empty: the system has no random bytes, and requests have no names
  transport::Transport& transport;
  ManagerClient client;
  KeptRecord kept;  // only the helper thread uses it
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;
  struct Released {
    std::uint64_t group;
    std::vector<std::string> lost;  // the aggregators that it lost, and has not reported yet
  };
  // Groups that were released, but not given back yet; the mutex guards them until the thread is `stopping`.
  std::vector<Released> released;
  bool stopping = false;
  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // it ends with the service
  std::thread thread;
};

Result<std::unique_ptr<HttpGroupService>> HttpGroupService::create(HttpGroupServiceSettings settings,
                                                                   transport::Transport& transport) {
  auto tls = manager_client::tls_for(settings.url, settings.tls);
  if (!tls) return std::unexpected(tls.error());
  if (auto client = ManagerClient::create({.url = settings.url, .token = settings.token, .tls = *tls}); !client) {
    return fail(Errc::bad_config, "TRIBUTARY_MANAGER: '" + settings.url + "': " + client.error().message);
  }
  return std::unique_ptr<HttpGroupService>(
      new HttpGroupService(std::make_unique<Impl>(std::move(settings), std::move(*tls), transport)));
}

HttpGroupService::HttpGroupService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpGroupService::~HttpGroupService() = default;

void HttpGroupService::request(const GroupRequest& request, DescriptorAnswer answer) {
  impl_->add([request, answer = std::move(answer), impl = impl_.get()](ManagerClient& client) mutable {
    manager_client::GroupRequest wanted;
    wanted.job = request.job;
    wanted.priority = request.priority;
    wanted.user = request.user;
    wanted.processes = request.processes;
    wanted.hosts = request.hosts;
    wanted.lanes = request.lanes;
    wanted.lane_weights = true;
    wanted.form_senders = request.form_senders;
    wanted.link_rate_bits_per_second = request.link_rate;
    wanted.rail = request.rail;
    wanted.packet_security = request.packet_security;
    wanted.exchange_key = request.exchange_key;
    const std::string& name = impl->request_name;
    if (!name.empty()) wanted.request_id = name + "-" + std::to_string(request.attempt);
    impl->kept.note_hosts(request.hosts);
    impl->tell(std::move(answer), impl->kept.take(client.request_group(wanted)));
  });
}

void HttpGroupService::places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
                              PageAnswer answer) {
  impl_->add([=, answer = std::move(answer), impl = impl_.get()](ManagerClient& client) mutable {
    impl->tell(std::move(answer), client.group_places(group, epoch, first, count));
  });
}

void HttpGroupService::rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed,
                               bool in_use, DescriptorAnswer answer) {
  impl_->add([=, answer = std::move(answer), impl = impl_.get()](ManagerClient& client) mutable {
    auto rebuilt = client.rebuild_group(group, epoch, failed, in_use);
    if (!rebuilt && may_be_forgotten(rebuilt.error().code) && impl->kept.adopted(client, group)) {
      rebuilt = client.rebuild_group(group, epoch, failed, in_use);
    }
    impl->tell(std::move(answer), impl->kept.take(std::move(rebuilt)));
  });
}

void HttpGroupService::renew(std::uint64_t group, const GroupTraffic& traffic,
                             std::function<void(Result<GroupLease>)> answer) {
  const manager_client::GroupTraffic told{.operations = traffic.operations,
                                          .bytes_in_network = traffic.bytes_in_network,
                                          .bytes_between_ranks = traffic.bytes_between_ranks,
                                          .bytes_in_shared_memory = traffic.bytes_in_shared_memory};
  impl_->add([group, told, answer = std::move(answer), impl = impl_.get()](ManagerClient& client) mutable {
    auto lease = impl->kept.renew(client, group, told);
    Result<GroupLease> result;
    if (!lease) {
      result = std::unexpected(translate(std::move(lease.error())));
    } else if (!lease->known) {
      result = fail(Errc::bad_argument, "the manager does not know group " + std::to_string(group) + " any more");
    } else {
      result = GroupLease{.better_trees = lease->rebuild_advised,
                          .leave = lease->leave_trees,
                          .why = std::move(lease->reason),
                          .epoch = lease->epoch,
                          .rates = lease->rates,
                          .late = std::move(lease->late)};
    }
    impl->tell(std::move(answer), std::move(result));
  });
}

void HttpGroupService::release(std::uint64_t group, const std::vector<std::string>& lost) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->released.push_back({group, lost});
  }
  impl_->add([group, lost, impl = impl_.get()](ManagerClient& client) {
    const auto answer = client.delete_group(group, lost);
    if (!answer && answer.error().code != Errc::peer_gone) return;  // give_back() tries once more at the end
    const std::lock_guard lock(impl->mutex);
    std::erase_if(impl->released, [group](const Impl::Released& it) { return it.group == group; });
  });
}

}  // namespace tributary::client
