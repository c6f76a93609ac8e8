#include "tree-manager/replicas/replica.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tree-manager/identity/revocations.h"

namespace tributary::manager {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCopyFresh{5000};
constexpr milliseconds kLookEvery{500};

/// Derives the limits from the lease. A member of etcd that hangs costs one attempt; a call then has time for all other
/// members long before the lease ends.
EtcdSettings with_limits(EtcdSettings etcd, milliseconds lease) {
  etcd.attempt_limit = lease / 5;
  return etcd;
}
milliseconds call_limit(milliseconds lease) {
  return lease * 2 / 5;
}
EtcdStoreSettings store_settings(milliseconds lease) {
  return {.write_limit = lease * 3 / 5, .read_limit = lease};
}

/// Returns a name that no other candidate has, and that a person recognizes in etcd.
std::string candidate_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::array<std::byte, 8> random{};
  static_cast<void>(random_bytes(random));
  return std::string(host.data()) + "-" + std::to_string(::getpid()) + "-" + to_hex(random);
}

/// Returns an error that ends with the store's trouble. Logs any other error after `what`, and returns false.
Result<bool> waits_or_fails(const char* what, const Status& ok) {
  constexpr std::array kEnding{Errc::retry, Errc::unreachable, Errc::timed_out, Errc::exhausted};
  if (ok) return true;
  if (std::ranges::find(kEnding, ok.error().code) != kEnding.end()) return std::unexpected(ok.error());
  spdlog::error("{}: {}", what, ok.error().message);
  return false;
}

}  // namespace

Replica::Replica(ReplicaSettings settings, const SigningKey& key, const Clock& clock)
    : settings_(std::move(settings)),
      key_(key),
      clock_(clock),
      secrets_(settings_.files, key_),
      passing_(settings_.passing, Forwarder(key_, clock)) {}

Replica::~Replica() {
  stop();
}

Result<std::unique_ptr<Replica>> Replica::open(ReplicaSettings settings, const SigningKey& key, const Clock& clock,
                                               ApiSettings api) {
  std::unique_ptr<Replica> replica(new Replica(std::move(settings), key, clock));
  if (auto ok = replica->assemble(std::move(api)); !ok) return std::unexpected(ok.error());
  return replica;
}

Status Replica::assemble(ApiSettings api) {
  const milliseconds lease = settings_.lease;
  const EtcdSettings etcd = with_limits(settings_.etcd, lease);
  auto election = EtcdElection::create(etcd, "", candidate_name(), call_limit(lease));
  if (!election) return std::unexpected(election.error());
  election_ = std::move(*election);
  for (auto* reader : {&followed_, &copied_}) {
    auto opened = open_etcd_to_read(etcd, {.read_limit = call_limit(lease), .reads_one_member = reader == &copied_});
    if (!opened) return std::unexpected(opened.error());
    *reader = std::move(*opened);
  }
  copy_ = std::make_unique<Copy>(
      settings_.cluster, key_, clock_,
      Copy::Source{.load = [this] { return copied_->load(); }, .topology = settings_.topology}, kCopyFresh);
  member_ = std::make_unique<Member>(*election_, clock_,
                                     LeadershipSettings{.lease = lease, .look_every = std::min(kLookEvery, lease / 10)},
                                     MemberWork{.open = [this](const Term& term) { return open_reign(term); },
                                                .begin = [this](Cluster& cluster) { return begin(cluster); },
                                                .follow = [this] { follow(); }},
                                     [this] { passing_.cancel(); });
  api.standing = [this] {
    Standing now = front_->standing();
    if (now.leads) now.leader = url_;
    return now;
  };
  api_ = std::make_unique<Api>([this] { return member_->cluster(); }, std::move(api));
  front_ = std::make_unique<Front>(*api_, *member_, passing_, *copy_, Forwarder(key_, clock_));
  const auto sealed = followed_->value(kSharedSecretsKey);
  if (sealed) {
    auto ok = secrets_.take_over(*sealed, api_.get());
    return ok ? ok : fail(Errc::bad_config, ok.error().message);
  }
  spdlog::warn("etcd does not answer yet: {}", sealed.error().message);
  return {};
}

void Replica::start(const std::string& url) {
  url_ = url;  // set before this manager can lead, so before any thread reads it
  election_->reach_at(url);
  member_->start();
}

void Replica::stop() {
  if (member_) member_->stop();
}

Result<std::unique_ptr<Reign>> Replica::open_reign(const Term& term) const {
  EtcdStoreSettings limits = store_settings(settings_.lease);
  limits.fence_base_min = static_cast<std::uint64_t>(clock_.unix_milliseconds());
  auto topology = settings_.topology();
  if (!topology) return std::unexpected(topology.error());
  auto store = open_etcd(with_limits(settings_.etcd, settings_.lease), limits, term);
  if (!store) return std::unexpected(store.error());
  auto cluster = Cluster::open(settings_.cluster, **store, *key_.now(), clock_, std::move(*topology));
  if (!cluster) return std::unexpected(cluster.error());
  auto reign = std::make_unique<Reign>();
  reign->lost = [raw = store->get()] { return raw->lost(); };
  reign->store = std::move(*store);
  reign->cluster = std::move(*cluster);
  return reign;
}

Status Replica::begin(Cluster& cluster) {
  if (auto ok = secrets_.begin(cluster, *api_); !ok) return ok;
  // The earlier leader may have changed the key after this manager had opened the cluster.
  if (cluster.signing().now()->signing.public_key() != public_key()) cluster.signing().use(*key_.now());
  return api_->authenticator().use_revocations(cluster.kept(kRevokedTokensKey));
}

/// Followers ask etcd again and again instead of using a watch, because a watch needs the history, which etcd compacts.
void Replica::follow() {
  const auto sealed = followed_->value(kSharedSecretsKey);
  if (sealed) {
    const auto ok = secrets_.take_over(*sealed, api_.get());
    if (!ok && refused_ != *sealed) spdlog::error("{}", ok.error().message);
    refused_ = ok ? "" : *sealed;
  }
  const auto revoked = followed_->value(kRevokedTokensKey);
  if (!revoked) return;
  if (const auto ok = api_->authenticator().use_revocations(*revoked); !ok) spdlog::error("{}", ok.error().message);
}

void Replica::tick() {
  if (const auto cluster = member_->cluster()) cluster->tick();
}

/// Takes the signing key from its file. The leader uses it at once, and the managers that follow use it then.
Result<bool> Replica::reload_signing_key(Cluster* cluster) {
  const auto secrets = load_or_make_secrets(settings_.files.paths);
  if (!secrets) {
    spdlog::error("the signing key was not reloaded, and the old one stays in use: {}", secrets.error().message);
    return false;
  }
  key_.offer(secrets->key);
  if (!key_.next()) return true;
  if (cluster == nullptr) {
    spdlog::info("this manager has a new signing key, and uses it as soon as the manager that leads uses it");
    return true;
  }
  return waits_or_fails("the signing key was not changed", secrets_.change_key(*cluster));
}

Result<bool> Replica::reload_topology(Cluster& cluster) {
  auto topology = settings_.topology();
  if (!topology) {
    spdlog::error("the topology was not reloaded, and the old one stays in use: {}", topology.error().message);
    return false;
  }
  if (*topology) {
    if (auto ok = cluster.reload_topology(std::move(**topology)); !ok) return std::unexpected(ok.error());
    return true;
  }
  if (cluster.topology_from_file()) {
    spdlog::warn("the configuration names no topology any more; the old one stays in use until a restart");
  }
  return true;
}

Result<bool> Replica::reload_secrets(Cluster& cluster) {
  const auto published = secrets_.publish(cluster, *api_);
  if (published) spdlog::info("all managers now use the tokens and identity keys of this manager's files");
  return waits_or_fails("the tokens and identity keys were not reloaded, and the old ones stay in use", published);
}

/// The topology comes last: while the store takes nothing, the other changes fail first, and nothing is done twice.
Result<bool> Replica::reload() {
  const auto cluster = member_->cluster();
  const auto leader = member_->leader();
  if (!cluster && !leader) return fail(Errc::retry, "no manager leads, as far as this manager knows");
  const auto key = reload_signing_key(cluster.get());
  if (!key) return key;
  if (cluster) {
    const auto secrets = reload_secrets(*cluster);
    if (!secrets) return secrets;
    const auto topology = reload_topology(*cluster);
    return topology ? *key && *secrets && *topology : topology;
  }
  if (!secrets_.files_differ()) return key;
  spdlog::error(
      "the tokens or identity keys in this manager's files are not the store's secrets, and no manager uses them: "
      "change the files of the manager that leads ({}), and send SIGHUP to that manager",
      leader->url);
  return false;
}

}  // namespace tributary::manager
