#include "aggregator/daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "aggregator/daemon/files.h"
#include "aggregator/daemon/host_address.h"
#include "aggregator/daemon/late_ranks.h"
#include "aggregator/daemon/line_rate.h"
#include "aggregator/daemon/modules.h"
#include "aggregator/daemon/packet_settings.h"
#include "aggregator/daemon/transport_checks.h"
#include "service-kit/units.h"
#include "tributary/protocol/reason.h"

namespace tributary::aggregator {

using service::bytes_text;
using service::duration_text;

namespace {

using std::chrono::milliseconds;

// A loop makes a turn at least every tick (50 ms). A thread that makes no turn for seconds is not busy: it hangs.
constexpr auto kStuckAfter = std::chrono::seconds(10);
constexpr auto kShutdownPoll = milliseconds(10);
constexpr auto kGoodbyeShare = 4;  // drain_limit divided by this is the longest wait for a silent manager

milliseconds in_milliseconds(Settings::Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration);
}

/// Neighbouring lanes of a group go to neighbouring workers; the group's number chooses the first worker.
std::size_t mix(std::uint64_t group, std::uint32_t lane) noexcept {
  std::uint64_t x = group * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 32U;
  return static_cast<std::size_t>(x + lane);
}

void warn_about_memory(std::uint64_t memory) {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return;
  const std::uint64_t physical = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  if (memory <= physical) return;
  spdlog::warn(
      "memory is {}, but this host has {} MiB: set it lower, or lanes may be promised memory that does not exist",
      bytes_text(memory), physical >> 20U);
}

PacketSecurity least_security(const Settings& settings) {
  const auto level = [](const std::string& text) {
    return parse_packet_security(text).value_or(PacketSecurity::encrypt);
  };
  return std::max(level(settings.security), level(settings.packet_security));
}

}  // namespace

Daemon::Daemon(const Settings& settings)
    : settings_(settings),
      link_keys_(std::make_shared<transport::LinkKeys>(least_security(settings), settings.transport == "verbs")),
      budget_(settings.memory),
      tenants_({.connections_max = settings.tenant_connections_max,
                .half_open_max = settings.tenant_half_open_max,
                .joins_per_second_max = settings.tenant_joins_per_second_max}),
      traces_(settings_.name, settings_.host_id, workers_),
      pages_([this](const service::HttpHead& head) { return page(head); }) {
  link_keys_->set_derive([this](const LinkName& name) -> transport::LinkKeys::Found {
    const auto key = keys_.current();
    if (!key) return std::unexpected(transport::NoSecret::not_yet);
    if (!key->shared) return std::unexpected(transport::NoSecret::unknown);
    return link_secret(*key->shared, name);
  });
}

Daemon::~Daemon() {
  if (http_) http_->stop(std::chrono::milliseconds(0));  // only stops: pages use http_ until its threads have ended
  if (shutdown_.joinable()) shutdown_.join();
  if (ListenPlaces* const places = listen_places()) places->on_change(nullptr);
  straggler_log_.on_news(nullptr);
  manager_.reset();
  front_door_.reset();
  rdma_door_.reset();
  udp_door_.reset();
}

/// Returns nullptr if the transport has one address, and cannot check whether the address lives.
ListenPlaces* Daemon::listen_places() const noexcept {
  if (rdma_door_) return &rdma_door_->places();
  return front_door_ ? &front_door_->places() : nullptr;
}

std::vector<ListenPlace> Daemon::data_places() const {
  if (const ListenPlaces* const places = listen_places()) return places->all();
  const Endpoint at = udp_door_ ? udp_door_->local() : Endpoint{dpdk_->address(), workers_.front()->port()};
  return {{.at = at, .live = true, .why_not = {}}};
}

std::vector<Endpoint> Daemon::advertised() const {
  std::vector<Endpoint> list;
  for (const ListenPlace& place : data_places()) {
    const std::size_t which = list.size();
    list.push_back({which < settings_.advertise.size() ? settings_.advertise[which] : place.at.host, place.at.port});
  }
  return list;
}

std::vector<std::uint32_t> Daemon::data_down() const {
  std::vector<std::uint32_t> down;
  const auto places = data_places();
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if (!places[i].live) down.push_back(i);
  }
  return down;
}

Result<std::unique_ptr<Daemon>> Daemon::start(const Settings& settings) {
  if (auto token = read_token(settings.token_file); !token) return std::unexpected(token.error());
  std::unique_ptr<Daemon> daemon(new Daemon(settings));
  if (auto ok = daemon->load_identity(); !ok) return std::unexpected(ok.error());
  if (auto ok = check_transport_settings(settings); !ok) return std::unexpected(ok.error());
  warn_about_memory(settings.memory);
  auto shares = LinkShares::open(settings);
  if (!shares) return std::unexpected(shares.error());
  daemon->link_shares_ = std::move(*shares);
  if (auto ok = daemon->start_workers(); !ok) return std::unexpected(ok.error());
  if (auto ok = daemon->open_front_door(); !ok) return std::unexpected(ok.error());
  if (auto ok = daemon->open_http(); !ok) return std::unexpected(ok.error());
  daemon->start_manager_link();
  daemon->up_.store(true, std::memory_order_release);  // pairs with page()
  return daemon;
}

Status Daemon::load_identity() {
  const auto identity = read_identity(settings_.state_file);
  if (!identity) return std::unexpected(identity.error());
  const bool ours = *identity && (*identity)->name == settings_.name;
  const bool kept = ours && (*identity)->exchange_private && (*identity)->manager_exchange;
  auto exchange = kept ? ExchangeKey::from_private(*(*identity)->exchange_private) : ExchangeKey::generate();
  if (!exchange) return std::unexpected(exchange.error());
  exchange_ = *exchange;
  if (!*identity) return {};
  if (!ours) {
    spdlog::info("the key in {} was kept for aggregator {}; this is {}, so it is not used", settings_.state_file,
                 (*identity)->name, settings_.name);
    return {};
  }
  spdlog::info("tokens are verified with the key kept in {} until the manager answers", settings_.state_file);
  const auto shared = kept ? exchange_->agree(*(*identity)->manager_exchange) : fail(Errc::corrupt, "");
  return keys_.set((*identity)->name, (*identity)->manager_key, shared ? std::optional(*shared) : std::nullopt);
}

transport::NearSettings Daemon::transport_settings() const {
  transport::NearSettings near;
  transport::TcpSettings& tcp = near.tcp;
  tcp.connections_max = settings_.connections_max;
  tcp.user_timeout = settings_.user_timeout;
  tcp.keepalive = settings_.keepalive;
  tcp.busy_poll = settings_.busy_poll;
  tcp.keys = link_keys_;
  near.shm.connections_max = settings_.connections_max;
  near.shared_memory = settings_.shared_memory;
  near.shm.map_bytes_max = settings_.map_max;
  return near;
}

/// Connections to parents use the devices at which children connect, lane by lane, if listen names these devices.
transport::VerbsSettings Daemon::verbs_settings() const {
  transport::VerbsSettings verbs;
  verbs.connections_max = settings_.connections_max;
  verbs.busy_poll = settings_.busy_poll;
  verbs.queue_pairs = settings_.rdma_queue_pairs;
  verbs.path = settings_.rdma_path;
  verbs.keys = link_keys_;
  verbs.rails = rails_;
  if (!rails_.empty()) return verbs;
  for (const Endpoint& place : settings_.listen) {
    if (is_one_address(place.host)) verbs.rails.push_back(place.host);
  }
  if (verbs.rails.size() != settings_.listen.size()) verbs.rails.clear();  // if listen has a name, the system chooses
  return verbs;
}

transport::UdpSettings Daemon::udp_settings() const {
  transport::UdpSettings udp;
  take_packet_settings(udp, settings_);
  udp.datagram_bytes_max = settings_.packet_datagram_bytes_max;
  udp.busy_poll = settings_.busy_poll;
  udp.keys = link_keys_;
  if (link_shares_) udp.send_buffer_bytes = std::max(udp.send_buffer_bytes, link_shares_->send_buffer_bytes());
  return udp;
}

Status Daemon::start_workers() {
  const WorkerSettings worker{.name = settings_.name,
                              .join_limit = settings_.join_limit,
                              .form_limit = settings_.form_limit,
                              .flush_limit = settings_.flush_limit,
                              .sessions_unjoined_max = settings_.unjoined_max,
                              .pulse = {.limit = settings_.hang_after},
                              .link_keys = link_keys_,
                              .changed = changed_,
                              .late_ranks = settings_.late_ranks,
                              .traced_segments_max = TraceRecorder::segments_max_of_worker(settings_.workers),
                              .link_classes = link_shares_ ? link_shares_->classes() : nullptr,
                              .on_straggler = [this](const StragglerNotice& notice) { straggler_log_.note(notice); }};
  if (settings_.transport == "verbs") return start_rdma_workers(worker);
  if (settings_.transport == "udp") return start_udp_workers(worker);
  if (settings_.transport == "dpdk") return start_dpdk_workers(worker);
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    workers_.push_back(std::make_unique<WorkerThread>(i, budget_, worker, transport_settings()));
  }
  return {};
}

Status Daemon::start_rdma_workers(const WorkerSettings& worker) {
  const auto module = verbs_module();
  if (!module) return fail(Errc::bad_config, "transport is verbs, but " + module.error().message);
  verbs_ = *module;
  if (const auto names = transport::names_of_rails(settings_.rdma_devices); !names.empty()) {
    const auto rails =
        transport::choose_rails(transport::SystemTree(), verbs_->rails(), {.names = names, .gpu = {}, .node = {}});
    if (!rails) return fail(Errc::bad_config, "rdma_devices: " + rails.error().message + ".");
    for (const transport::Rail& rail : *rails) rails_.push_back(rail.address);
  }
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    auto verbs = verbs_->make(verbs_settings());
    if (!verbs) return fail(Errc::bad_config, "transport is verbs, but " + verbs.error().message);
    workers_.push_back(WorkerThread::over_rdma(i, budget_, worker, *verbs_, std::move(*verbs),
                                               [this](std::span<const std::byte> join) { return verify(join); }));
  }
  return {};
}

Status Daemon::start_udp_workers(const WorkerSettings& worker) {
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    auto thread = WorkerThread::over_udp(i, budget_, worker, settings_.listen.front().host, udp_settings(),
                                         [this, i](std::span<const std::byte> join) { return verify_for(i, join); });
    if (!thread) return fail(Errc::io, thread.error().message);
    workers_.push_back(std::move(*thread));
  }
  return {};
}

Status Daemon::start_dpdk_workers(const WorkerSettings& worker) {
  auto network = DpdkNetwork::open(settings_, link_keys_);
  if (!network) return std::unexpected(network.error());
  dpdk_ = std::move(*network);
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    auto thread = dpdk_->start_worker(i, budget_, worker,
                                      [this, i](std::span<const std::byte> join) { return verify_for(i, join); });
    if (!thread) return fail(Errc::io, thread.error().message);
    workers_.push_back(std::move(*thread));
  }
  return {};
}

/// Runs on the workers' threads.
Result<VerifiedJoin> Daemon::verify(std::span<const std::byte> join) {
  {
    const std::lock_guard lock(draining_mutex_);
    if (!draining_.empty())
      return fail(Errc::denied, Reason::draining, "aggregator " + settings_.name + " takes no new lanes: " + draining_);
  }
  const auto key = keys_.current();
  if (!key) {
    return fail(Errc::retry, Reason::no_key,
                "aggregator " + settings_.name + " has not reached its manager yet, so it cannot verify tokens");
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto verified =
      verify_join(key->verifier, key->name, join, std::chrono::duration_cast<std::chrono::seconds>(now).count());
  if (verified) {
    if (auto ok = keys_.admit(verified->claims); !ok) return std::unexpected(ok.error());
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now().time_since_epoch();
    auto place = tenants_.enter(verified->claims.tenant, time.count());
    if (!place) return std::unexpected(place.error());
    verified->place = std::move(*place);
  }
  if (verified) {
    if (auto ok = add_parent_link(*verified, key->shared, link_keys_->wanted()); !ok)
      return std::unexpected(ok.error());
  }
  return verified;
}

/// Refuses a child that asked the door for one lane and shows the token of another lane: it is at the wrong worker, and
/// two workers would serve its lane. Runs on the workers' threads.
Result<VerifiedJoin> Daemon::verify_for(std::size_t worker, std::span<const std::byte> join) {
  auto verified = verify(join);
  if (verified && mix(verified->claims.group, verified->claims.lane) % settings_.workers != worker) {
    return fail(Errc::denied, Reason::join_token_elsewhere,
                "the connection was asked for with another group or lane than its token names");
  }
  return verified;
}

WorkerThread& Daemon::worker_of(std::uint64_t group, std::uint32_t lane) noexcept {
  return *workers_[mix(group, lane) % workers_.size()];
}

Status Daemon::open_rdma_door() {
  auto door = RdmaDoor::open(*verbs_, settings_.listen, [this](const transport::VerbsClaim& claim) {
    return worker_of(claim.group, claim.lane).rdma();
  });
  if (!door) return fail(Errc::io, door.error().message + " listen must be an address of an RDMA device's interface.");
  rdma_door_ = std::move(*door);
  return {};
}

Status Daemon::open_udp_door() {
  transport::UdpSettings udp = udp_settings();
  udp.busy_poll = {};
  auto door = UdpDoor::open(settings_.listen.front(), udp, [this](const transport::UdpClaim& claim) {
    return worker_of(claim.group, claim.lane).port();
  });
  if (!door) {
    return fail(Errc::io, door.error().message +
                              " End the process that holds it, or set listen (--listen) to another "
                              "address; port 0 chooses a free one.");
  }
  udp_door_ = std::move(*door);
  return {};
}

Status Daemon::open_dpdk_door() {
  auto door =
      dpdk_->open_door([this](const transport::DpdkClaim& claim) { return worker_of(claim.group, claim.lane).port(); });
  if (!door) return std::unexpected(door.error());
  udp_door_ = std::move(*door);
  return {};
}

Status Daemon::open_front_door() {
  if (settings_.transport == "verbs") return open_rdma_door();
  if (settings_.transport == "udp") return open_udp_door();
  if (settings_.transport == "dpdk") return open_dpdk_door();
  transport::NearSettings near = transport_settings();
  near.tcp.connections_max = 2 * settings_.unjoined_max + 64;  // connections that wait or are refused, and a few more
  near.tcp.busy_poll = {};
  near.shm.connections_max = near.tcp.connections_max;
  auto door =
      FrontDoor::open({.listen = settings_.listen,
                       .name = settings_.name,
                       .unjoined_max = settings_.unjoined_max,
                       .join_limit = settings_.join_limit,
                       .transport = near},
                      keys_, tenants_, [this](std::unique_ptr<transport::HandedOver> connection, VerifiedJoin join) {
                        worker_of(join.claims.group, join.claims.lane).take(std::move(connection), std::move(join));
                      });
  if (!door) {
    return fail(
        Errc::io,
        door.error().message +
            " End the process that holds it, or set listen (--listen) to another address; port 0 chooses a free one.");
  }
  front_door_ = std::move(*door);
  return {};
}

Status Daemon::open_http() {
  const auto tls = status_tls(settings_);
  if (!tls) return std::unexpected(tls.error());
  auto server = service::HttpServer::start({.listen = settings_.http_listen,
                                            .server_name = "tributary-aggregator",
                                            .thread_name = "http",
                                            .threads = 1,
                                            .connections_max = settings_.http_connections_max,
                                            .request_limit = std::chrono::seconds(5),
                                            .write_limit = std::chrono::seconds(10),
                                            .header_bytes_max = 8U << 10,
                                            .stranger_bytes_max = 16U << 20,
                                            .tls = *tls},
                                           pages_);
  if (!server) {
    return fail(Errc::io, server.error().message +
                              ". End the process that holds it, or set http_listen (--http) to another address; port 0 "
                              "chooses a free one.");
  }
  http_ = std::move(*server);
  return {};
}

void Daemon::start_manager_link() {
  const std::vector<Endpoint> data = advertised();
  std::vector<std::string> own;
  for (const ListenPlace& place : data_places()) own.push_back(place.at.host);
  const ManagerLinkSettings link{
      .url = settings_.manager,
      .token_file = settings_.token_file,
      .tls = settings_.tls,
      .state_file = settings_.state_file,
      .registration = {.name = settings_.name,
                       .host = settings_.host_id,
                       .data = data.front(),
                       .http = {settings_.advertise.empty() ? settings_.http_listen.host : settings_.advertise.front(),
                                http_endpoint().port},
                       .memory_bytes = settings_.memory,
                       .children_max = settings_.children_max,
                       .line_rate_bits_per_second =
                           settings_.line_rate != 0 ? settings_.line_rate : line_rate_of(own, settings_.manager),
                       .version = TRIBUTARY_VERSION,
                       .exchange_key = exchange_->public_key(),
                       .data_more = {data.begin() + 1, data.end()},
                       .security = link_keys_->least()},
      .exchange = *exchange_,
      .drain_grace = in_milliseconds(settings_.drain_grace)};
  const std::string reason = "the manager drains it";
  manager_ = std::make_unique<ManagerLink>(link, keys_,
                                           ManagerLinkUser{.load = [this] { return load(); },
                                                           .data_down = [this] { return data_down(); },
                                                           .drain_begins = [this, reason] { set_draining(reason); },
                                                           .drain_ends = [this, reason] { drain_workers(reason); },
                                                           .drain_revoked = [this] { set_draining({}); }});
  if (ListenPlaces* const places = listen_places()) places->on_change([this] { manager_->renew_soon(); });
  straggler_log_.on_news([this] { manager_->renew_soon(); });
}

// ---- Reports

manager_client::AggregatorLoad Daemon::load() const {
  manager_client::AggregatorLoad load{.memory_in_use_bytes = budget_.in_use(), .changed_records = changed_->count()};
  for (const WorkerSnapshot& worker : snapshots_of(workers_, kSnapshotLimit)) {
    load.lanes_active += static_cast<std::uint32_t>(worker.metrics.lanes_active);
    load.sessions += static_cast<std::uint32_t>(worker.sessions);
    load.contribution_bytes_total += worker.metrics.contribution_bytes;
    add_late_ranks(load.late, worker.lanes);
  }
  return load;
}

std::vector<std::string> Daemon::stuck() const {
  const auto limit = std::chrono::steady_clock::now() - kStuckAfter;
  std::vector<std::string> names;
  const auto door_turn = rdma_door_    ? rdma_door_->last_turn()
                         : udp_door_   ? udp_door_->last_turn()
                         : front_door_ ? front_door_->last_turn()
                                       : std::chrono::steady_clock::now();
  if (door_turn < limit) names.emplace_back("front door");
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i]->last_turn() < limit) names.push_back("worker " + std::to_string(i));
  }
  return names;
}

DaemonStatus Daemon::status() const {
  DaemonStatus status{.name = settings_.name,
                      .version = TRIBUTARY_VERSION,
                      .host_id = settings_.host_id,
                      .workers = snapshots_of(workers_, kSnapshotLimit),
                      .workers_total = settings_.workers,
                      .memory_bytes_max = budget_.bytes_max(),
                      .memory_bytes_reserved = budget_.in_use(),
                      .shown = {.udp = settings_.transport == "udp",
                                .verbs = settings_.transport == "verbs",
                                .dpdk = settings_.transport == "dpdk"},
                      .front_door = front_door_ ? front_door_->counts() : FrontDoorCounts{},
                      .tenants = tenants_.counts(),
                      .links = link_shares_ ? link_shares_->counts() : LinkShareCounts{},
                      .http = http_->door().counts(),
                      .http_connections = http_->door().count(),
                      .has_key = keys_.current() != nullptr,
                      .stuck = stuck(),
                      .now = std::chrono::steady_clock::now()};
  status.manager = manager_->state();
  status.listen = data_places();
  if (dpdk_) {
    status.dpdk_device = dpdk_->statistics();
    status.dpdk_door = dpdk_->door_statistics();
  }
  const std::lock_guard lock(draining_mutex_);
  status.draining = draining_;
  return status;
}

service::HttpReply Daemon::page(const service::HttpHead& head) {
  const std::string_view path = head.path;
  constexpr auto kText = "text/plain; charset=utf-8";
  const auto reply = [](unsigned status, const char* type, std::string body) {
    return service::HttpReply{.status = status, .content_type = type, .body = std::move(body), .headers = {}};
  };
  if (!up_.load(std::memory_order_acquire)) return reply(503, kText, "starting\n");
  if (path == "/metrics") return reply(200, "text/plain; version=0.0.4; charset=utf-8", metrics_page(status()).text());
  if (path == "/lanes") return reply(200, "application/json", lanes_json(status()));
  if (path == "/healthz") {
    const DaemonStatus now = status();
    return reply(healthy(now) ? 200 : 503, "application/json", health_json(now));
  }
  if (path == "/v1/trace") return traces_.answer(head.query);
  return reply(404, kText, "there are /metrics, /healthz, /lanes and /v1/trace\n");
}

std::string Daemon::ready_json() const {
  const auto endpoint = [](const Endpoint& at) { return nlohmann::json{{"host", at.host}, {"port", at.port}}; };
  nlohmann::json places = nlohmann::json::array();
  for (const ListenPlace& place : data_places()) places.push_back(endpoint(place.at));
  return nlohmann::json{{"name", settings_.name},
                        {"pid", ::getpid()},
                        {"data", places.front()},
                        {"addresses", places},
                        {"http", endpoint(http_endpoint())}}
             .dump() +
         "\n";
}

// ---- Draining

void Daemon::set_draining(const std::string& reason) {
  {
    const std::lock_guard lock(draining_mutex_);
    if (shutting_down_) return;
    draining_ = reason;
    if (front_door_) front_door_->close_to_joins(reason);
  }
  if (!reason.empty()) return;
  for (const auto& worker : workers_) worker->undrain();
}

void Daemon::drain_workers(const std::string& reason) {
  for (const auto& worker : workers_) worker->drain(reason);
}

void Daemon::begin_shutdown(const std::string& reason) {
  {
    const std::lock_guard lock(draining_mutex_);
    if (std::exchange(shutting_down_, true)) return;
    draining_ = reason;
    if (front_door_) front_door_->close_to_joins(reason);
  }
  shutdown_ = std::jthread([this, reason] {
    shut_down_within_limit(reason);
    shut_down_.store(true, std::memory_order_release);
  });
}

// Tells the manager first, so that it plans no tree over this aggregator when the groups ask for other trees.
void Daemon::shut_down_within_limit(const std::string& reason) {
  const auto deadline = std::chrono::steady_clock::now() + settings_.drain_limit;
  manager_->take_leave(in_milliseconds(settings_.drain_limit) / kGoodbyeShare);
  drain_workers(reason);
  while (!all_sessions_ended()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      spdlog::warn("some children did not read the reason within {}: they find a broken connection",
                   duration_text(settings_.drain_limit));
      return;
    }
    std::this_thread::sleep_for(kShutdownPoll);
  }
}

bool Daemon::all_sessions_ended() const {
  const auto snapshots = snapshots_of(workers_, kSnapshotLimit);
  return snapshots.size() == workers_.size() &&
         std::ranges::all_of(snapshots, [](const WorkerSnapshot& worker) { return worker.sessions == 0; });
}

}  // namespace tributary::aggregator
