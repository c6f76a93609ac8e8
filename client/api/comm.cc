#include "client/api/comm.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "client/api/fork_guard.h"
#include "client/api/http_group_service.h"
#include "client/api/interfaces.h"
#include "client/api/io_threads.h"
#include "client/api/log.h"
#include "client/api/products.h"
#include "client/api/transports.h"
#include "client/collectives/fallback/peer_link.h"
#include "client/control/time_out.h"
#include "client/gpu/path_choice.h"
#include "service-kit/status_folder.h"
#include "tributary/transport/descriptors.h"
#include "tributary/transport/link_rate.h"
#include "tributary/transport/udp.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

// The time that this thread waits longer than the communicator's own time-out, whose error names the missing ranks. It
// counts only if that time-out does not work.
constexpr auto kSlack = 5s;
constexpr auto kLook = 100ms;
constexpr std::size_t kTokenBytesMax = 4096;

Result<std::string> read_token(const std::string& file) {
  if (file.empty()) return std::string();
  std::ifstream in(file, std::ios::binary);
  std::string token(kTokenBytesMax, '\0');
  if (in) in.read(token.data(), static_cast<std::streamsize>(token.size()));
  if (in.bad() || (!in && !in.eof())) {
    return fail(Errc::bad_config,
                "TRIBUTARY_TOKEN_FILE: '" + file + "' cannot be read; it must hold the manager's job token");
  }
  token.resize(static_cast<std::size_t>(in.gcount()));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.empty())
    return fail(Errc::bad_config,
                "TRIBUTARY_TOKEN_FILE: '" + file + "' is empty; it must hold the manager's job token");
  return token;
}

bool wants_manager(const ClientSettings& settings, std::uint32_t nranks) {
  return !settings.manager.empty() && settings.path != PathMode::fallback && nranks > 1;
}

Status add_root_parts(ProgressParts& parts, const ClientSettings& settings, const UniqueId& id) {
  std::string token;
  if (wants_manager(settings, parts.settings.nranks)) {
    auto read = read_token(settings.token_file);
    if (!read) return std::unexpected(read.error());
    token = std::move(*read);
  }
  parts.meeting = take_meeting(id);
  if (!parts.meeting) {
    return fail(
        Errc::bad_argument,
        "rank 0 must be in the process that made the unique id, once per id, and soon: this id was made elsewhere, "
        "or before a fork, was used already, or " +
            std::to_string(kMeetingsMax) + " newer ones have been made since");
  }
  parts.settings.link_keys = parts.meeting->keys();
  if (wants_manager(settings, parts.settings.nranks)) {
    // The token may be renewed or changed while the job runs.
    auto fresh_token = [file = settings.token_file] { return read_token(file).value_or(""); };
    auto service = HttpGroupService::create({settings.manager, std::move(token), settings.tls, std::move(fresh_token)},
                                            parts.meeting->transport());
    if (!service) return std::unexpected(service.error());
    parts.service = std::move(*service);
  }
  return {};
}

Status add_rank_parts(ProgressParts& parts, const ClientSettings& settings, const UniqueId& id) {
  std::string address = address_towards(id.root.host);
  RdmaWish rdma = rdma_wish(settings);
  if (parts.transport_name == "verbs") {
    auto chosen = rdma_addresses(settings, [](const char* name) { return std::getenv(name); });
    if (!chosen) return std::unexpected(chosen.error());
    rdma.rails = std::move(*chosen);
    address = parts.settings.advertised_host = rdma.rails.front();
  } else if (parts.transport_name == "dpdk") {
    address = parts.settings.advertised_host = settings.dpdk.address();
  } else if (!settings.interface_name.empty()) {
    auto chosen = address_to_advertise(settings.interface_name, {});
    if (!chosen) return std::unexpected(chosen.error());
    address = parts.settings.advertised_host = std::move(*chosen);
  }
  parts.settings.listen = {address, 0};
  auto keys = make_link_keys(parts.transport_name, settings.security);
  keys->set_peers(link_secret_of_peers(id.secret));
  parts.settings.link_keys = keys;
  auto transport = make_transport(parts.transport_name, address, tcp_wish(settings, address), std::move(keys),
                                  settings.dpdk, rdma, settings.udp);
  if (!transport) return std::unexpected(transport.error());
  parts.transport = std::move(*transport);
  return {};
}

/// Returns the user's name from the environment: the system's table of users may ask a server, and wait for its answer.
std::string user_of_process() {
  for (const char* variable : {"USER", "LOGNAME"}) {
    const char* const name = std::getenv(variable);
    if (name == nullptr || *name == '\0') continue;
    std::string user = std::string(name).substr(0, kNameBytesMax);
    const auto unprintable = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; };
    std::ranges::replace_if(user, unprintable, '?');  // the manager accepts no control characters
    return user;
  }
  return "uid " + std::to_string(geteuid());
}

/// Returns the limit for an aggregator's silence. If the fallback is forbidden, a lost tree ends the job, so the limit
/// is longer: an aggregator may have had no processor for half a second.
std::chrono::milliseconds pulse_limit(const ClientSettings& settings) {
  const bool only_trees = settings.path == PathMode::in_network || settings.require_in_network;
  if (!only_trees || settings.hang_after == std::chrono::milliseconds::zero()) return settings.hang_after;
  return std::max(settings.hang_after, std::chrono::duration_cast<std::chrono::milliseconds>(settings.timeout) / 3);
}

/// Returns a name of the group that is equal on all ranks, and does not tell its secret.
std::string public_name(const UniqueId& id) {
  constexpr std::size_t kBytes = 6;
  constexpr std::string_view digits = "0123456789abcdef";
  const Secret secret = derived(id.secret, "the name in flight records", 0);
  std::string name;
  for (const std::byte b : std::span(secret).first<kBytes>()) {
    name += digits[std::to_integer<std::size_t>(b) >> 4];
    name += digits[std::to_integer<std::size_t>(b) & 15];
  }
  return name;
}

/// Counts the packets that are lost over UDP as this rank's trouble: the kernel does not count them.
void count_packets(OwnTroubles& troubles, const transport::Transport& of) {
  const auto* const udp = dynamic_cast<const transport::UdpTransport*>(&of);
  if (udp == nullptr) return;
  troubles.also_count([udp]() -> OwnTroubles::Segments {
    const transport::UdpStatistics counts = udp->statistics();
    const std::uint64_t late = std::min(counts.packets_came_late, counts.packets_sent_again);
    return {.sent = counts.packets_sent, .sent_again = counts.packets_sent_again - late};
  });
}

Result<ProgressParts> make_parts(std::uint32_t nranks, const UniqueId& id, std::uint32_t rank,
                                 const ClientSettings& settings) {
  ProgressParts parts;
  auto transport = choose_transport(settings.transports, settings.dpdk);
  if (!transport) return std::unexpected(transport.error());
  parts.transport_name = std::move(*transport);
  CommunicatorSettings& s = parts.settings;
  s.rank = rank;
  s.nranks = nranks;
  s.id = id;
  s.host_id = settings.host_id;
  s.rail = settings.rail;
  s.job = settings.job;
  s.priority = settings.priority;
  s.user = user_of_process();
  s.lanes = settings.lanes;
  s.path = settings.path;
  s.require_trees = settings.require_in_network;
  s.exact = settings.numerics == Numerics::exact;
  s.local = settings.local;
  s.attach = settings.attach;
  s.manager_configured = !settings.manager.empty();
  s.timeout = settings.timeout;
  s.pulse.limit = pulse_limit(settings);
  s.begin_within = settings.begin_within;
  s.tuning = settings.tuning;
  if (rank == 0 && settings.tuning == TuningMode::table) {
    auto table = tuning::read_table(settings.tuning_file);
    if (!table) return std::unexpected(table.error());
    s.tuning_table = std::move(*table);
  }
  s.flight_record = std::make_shared<FlightRecord>(FlightOrigin{
      .job = settings.job, .host = settings.host_id, .group = public_name(id), .rank = rank, .nranks = nranks});
  s.segment_trace = std::shared_ptr<SegmentTrace>(s.flight_record, &s.flight_record->segments());
  s.late_ranks = settings.late_ranks;
  if (settings.late_ranks) {
    s.troubles = std::make_shared<OwnTroubles>();
    s.neighbours = std::make_shared<Neighbours>();
  }
  parts.flight_folder = settings.flight_record;
  parts.statistics_folder = settings.statistics;
  auto ok = rank == 0 ? add_root_parts(parts, settings, id) : add_rank_parts(parts, settings, id);
  if (!ok) return std::unexpected(ok.error());
  if (s.troubles) count_packets(*s.troubles, rank == 0 ? parts.meeting->transport() : *parts.transport);
  const std::string& address = rank == 0 ? id.root.host : s.listen.host;
  s.link_rate = settings.link_rate != 0 ? settings.link_rate : transport::link_rate_of(address);
  return parts;
}

local::Call local_call(const CheckedCall& call) {
  return {.signature = call.signature,
          .send = call.send,
          .recv = call.recv,
          .in_place = call.in_place,
          .plain_memory = call.plain_memory};
}

/// Waits, in the call that makes a communicator, until all ranks have met, still_wanted returns false, or the time is
/// over.
Status wait_until_met(Request& met, const ClientSettings& settings) {
  const auto deadline = std::chrono::steady_clock::now() + settings.timeout * 21 / 20 + kSlack;
  while (true) {
    const auto slice = settings.still_wanted ? std::chrono::steady_clock::now() + kLook : deadline;
    if (met.wait(std::min(slice, deadline))) return {};
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Errc::timed_out, timed_out_after(settings.timeout) + "the ranks did not meet");
    if (settings.still_wanted && !settings.still_wanted())
      return fail(Errc::aborted, "the wait for the other ranks was given up: still_wanted of tributary_config said so");
  }
}

void end_requests(std::uint64_t comm_id, const Error& why) {
  requests().remove_if([comm_id](const Request& r) { return r.comm_id() == comm_id; },
                       [&](Request& r) { r.complete(std::unexpected(why)); });
}

}  // namespace

CommTable& comms() {
  static CommTable* const table = new CommTable;
  return *table;
}
RequestTable& requests() {
  static RequestTable* const table = new RequestTable;
  return *table;
}
MemoryTable& memories() {
  static MemoryTable* const table = new MemoryTable;
  return *table;
}

Comm::Comm(std::uint32_t nranks, std::uint32_t rank)
    : nranks_(nranks), rank_(rank), process_(fork_generation()), errors_(std::make_shared<CommErrors>()) {}

Comm::~Comm() {
  if (thread_) thread_->stop();  // the thread's last event waits for the stager's copies
}

bool Comm::of_this_process() const noexcept {
  return process_ == fork_generation();
}

namespace {

/// Checks the limit of file descriptors. Over TCP every connection is a descriptor; over RDMA the star uses TCP, too.
/// Rank 0 has a connection to each other rank, and every rank has at most one connection of each PeerClass to each
/// other rank. Over packets all connections share one descriptor.
Status have_descriptors(std::uint32_t nranks, std::uint32_t rank, const std::string& transport) {
  constexpr std::uint64_t kOthers = 64;  // descriptors of listeners, lanes, shared memory, the manager, the job
  if (transport == "udp" || transport == "dpdk") return {};
  transport::raise_descriptor_limit((kPeerClasses + 1) * std::uint64_t{nranks} + kOthers);
  if (rank != 0) return {};
  return transport::check_descriptors(transport::descriptor_limit(), nranks - 1 + kOthers,
                                      "rank 0 of " + std::to_string(nranks) + " ranks");
}

}  // namespace

Result<std::shared_ptr<Comm>> Comm::create(std::uint32_t nranks, const UniqueId& id, std::uint32_t rank,
                                           const ClientSettings& settings) {
  auto parts = make_parts(nranks, id, rank, settings);
  if (!parts) return std::unexpected(parts.error());
  if (auto ok = have_descriptors(nranks, rank, parts->transport_name); !ok) return std::unexpected(ok.error());
  auto comm = std::make_shared<Comm>(nranks, rank);
  const auto met = std::make_shared<Request>(comm->errors_);
  ProgressThread::Events events;
  const auto group = std::make_shared<std::shared_ptr<local::GroupCalls>>();  // set by `ready`, read afterwards
  events.ready = [met, group](const Status& status, const std::shared_ptr<local::GroupCalls>& local) {
    *group = local;
    met->complete(status);
  };
  comm->serve(settings, parts->settings.flight_record);
  comm->transport_name_ = parts->transport_name;
  comm->gpudirect_ = settings.gpudirect;
  comm->ops_.numerics = settings.numerics;
  comm->next_groups_.secret = id.secret;
  comm->check_values_ = settings.check_values;
  comm->record_ = parts->settings.flight_record;
  comm->while_waiting_ = settings.while_waiting;
  comm->stager_ = std::make_unique<gpu::Stager>(comm->stager_hooks());
  events.over = [met, id = comm->errors_->id(), stager = comm->stager_.get()](const Error& why) {
    met->complete(std::unexpected(why));
    stager->drain();  // no request is done while a copy touches its buffers
    end_requests(id, why);
  };
  comm->thread_ = std::make_unique<ProgressThread>(std::move(*parts), std::move(events));
  if (const Status outcome = wait_until_met(*met, settings); !outcome) met->complete(outcome);
  if (!met->outcome()) {
    comm->stop();
    return std::unexpected(met->outcome().error());
  }
  comm->local_ = std::move(*group);
  return comm;
}

Status Comm::may_start() const {
  if (phase_.load(std::memory_order_relaxed) == Phase::open) return {};
  return fail(Errc::bad_argument, "the communicator is finalized: nothing can be started on it any more");
}

gpu::Stager::Hooks Comm::stager_hooks() {
  return {
      .call = {.arrived =
                   [this] {
                     static_cast<void>(thread_->submit([](Communicator& c) { c.staged_input_arrived(); }, Next::large));
                   },
               .failed = [this](const Error& why) { abort_all(why); }},
      .keep = [this](std::span<const std::byte> memory) { return thread_->keep_registered(memory); },
      .choose = [this](gpu::CudaDriver& driver, int device) { return choose_gpu_path(driver, device); },
      .tell = [this](const std::string& line) { tell(LogLevel::info, line); }};
}

void Comm::tell(LogLevel level, const std::string& line) const {
  if (logs(level))
    log(level, "tributary: rank " + std::to_string(rank_) + " of " + std::to_string(nranks_) + ": " + line);
}

// The work goes on without a port.
void Comm::serve(const ClientSettings& settings, const std::shared_ptr<FlightRecord>& record) {
  if (settings.status_dir == "off") return;
  auto served = ServedRecord::serve(
      settings.status_dir == "auto" ? service::default_status_folder() : settings.status_dir, record);
  if (!served) return tell(rank_ == 0 ? LogLevel::info : LogLevel::debug, served.error().message);
  served_ = std::move(*served);
}

gpu::PathChoice Comm::choose_gpu_path(gpu::CudaDriver& driver, int device) const {
  const bool verbs = !local_ && transport_name_ == "verbs";
  auto choice = gpu::choose_path(
      {.gpu = gpu::gpu_facts(driver, device),
       .host = gpu::host_facts(),
       .transport = {.name = local_ ? "shared memory" : transport_name_, .rdma = verbs, .device_memory = verbs},
       .mode = gpudirect_});
  tell(LogLevel::info, choice.sentence);
  return choice;
}

/// Ends the communicator on all ranks: the other ranks wait for this rank.
void Comm::abort_all(const Error& why) {
  log(LogLevel::error, "tributary: rank " + std::to_string(rank_) + " of " + std::to_string(nranks_) +
                           ": the communicator ends: " + why.message);
  static_cast<void>(thread_->submit([text = why.message](Communicator& c) { c.abort(text); }, Next::large));
}

namespace {

gpu::CallBuffers buffers_of(const CheckedCall& call) {
  return {.send = call.send,
          .send_bytes = call.send_bytes,
          .recv = call.recv,
          .recv_bytes = call.recv_bytes,
          .in_place = call.in_place};
}

/// A registration that the stager owns. When this object ends, the stager forgets the memory.
class GpuMemoryKept final : public transport::KeptMemory {
 public:
  GpuMemoryKept(gpu::Stager& stager, std::span<const std::byte> memory) : stager_(stager), memory_(memory) {}
  GpuMemoryKept(const GpuMemoryKept&) = delete;
  GpuMemoryKept& operator=(const GpuMemoryKept&) = delete;
  ~GpuMemoryKept() override { stager_.forget(memory_); }

 private:
  gpu::Stager& stager_;
  std::span<const std::byte> memory_;
};

}  // namespace

Result<std::shared_ptr<gpu::StagedCall>> Comm::stage(const CheckedCall& call) {
  return stager_->stage(buffers_of(call));
}

std::unique_ptr<transport::KeptMemory> Comm::keep_gpu_memory(std::span<std::byte> memory) {
  if (local_) return nullptr;
  const auto direct = stager_->direct({.recv = memory.data(), .recv_bytes = memory.size()});
  if (!direct || *direct == nullptr) return nullptr;
  const Status status = ask([direct = *direct](Communicator& c, const Done& done) {
    done(c.prepare_direct(*direct));  // lanes that connect later prepare for the memory when an operation uses it
  });
  if (!status)
    tell(LogLevel::debug, "the network does not reach the registered memory of a GPU: " + status.error().message);
  return std::make_unique<GpuMemoryKept>(*stager_, memory);
}

std::function<void(const Status&)> Comm::complete_from_outside(const std::shared_ptr<Request>& request) {
  return [request, thread = thread_.get()](const Status& status) {
    request->complete(status);
    static_cast<void>(thread->submit([](Communicator&) {}, Next::large));
  };
}

namespace {

CheckedCall on_host(CheckedCall call, const gpu::StagedCall& staged) {
  call.send = staged.host().send;
  call.recv = staged.host().recv;
  call.plain_memory = false;  // a device's driver has pinned the memory
  return call;
}

}  // namespace

Status Comm::run(const CheckedCall& call) {
  if (auto ok = may_start(); !ok) return ok;
  const auto staged = stage(call);
  if (!staged) return std::unexpected(staged.error());
  if (*staged == nullptr) return run_on_host(call);
  if (auto ok = (*staged)->download(); !ok) return ok;
  return (*staged)->finish(run_on_host(on_host(call, **staged)));
}

Status Comm::run_on_host(const CheckedCall& call) {
  if (call.factor && !call.multiplied) {
    CheckedCall multiplied = call;
    const auto products = multiply_input(multiplied);
    return run_on_host(multiplied);
  }
  if (check_values_ == ValueCheck::off) return local_->queue.run(local_call(call));
  const auto values = look_at_input(call);
  if (!values) return std::unexpected(values.error());
  Status status = local_->queue.run(local_call(call));
  if (status) (*values)->see_result();
  return status;
}

// The other ranks of this host may wait in shared memory for this call. The group fails at once, so that they never
// take a later call of this rank for it.
Result<std::unique_ptr<CallValues>> Comm::look_at_input(const CheckedCall& call) {
  auto values = std::make_unique<CallValues>(call, nranks_, record_);
  if (check_values_ != ValueCheck::nan_fails) return values;
  const std::string nan = values->nan_in_input(rank_);
  if (nan.empty()) return values;
  if (local_) local_->group->fail({Errc::aborted, "rank " + std::to_string(rank_) + " aborted: " + nan});
  abort_all({Errc::aborted, nan});
  return fail(Errc::aborted, nan);
}

Status Comm::start(const CheckedCall& call, const std::shared_ptr<Request>& request, Next next) {
  if (auto ok = may_start(); !ok) return ok;
  const bool checks = check_values_ != ValueCheck::off;
  if (!local_ && !checks && !call.factor && in_network_capable(call.signature.collective)) {
    auto direct = stager_->direct(buffers_of(call));
    if (!direct) return std::unexpected(direct.error());
    if (*direct != nullptr) return start(call, std::move(*direct), request, next);
  }
  auto made = stage(call);
  if (!made) return std::unexpected(made.error());
  const std::shared_ptr<gpu::StagedCall> staged = std::move(*made);
  CheckedCall hosted = staged ? on_host(call, *staged) : call;
  const bool whole = local_ || checks || call.factor;  // the whole input comes down before the operation begins
  if (staged && whole) {
    if (auto ok = staged->download(); !ok) return ok;
  }
  if (hosted.factor) request->keep(multiply_input(hosted));
  if (checks) {
    auto values = look_at_input(hosted);
    if (!values) {
      request->complete(std::unexpected(values.error()));
      return {};
    }
    request->count_values(std::move(*values));
  }
  if (local_) {
    using Begin = local::CallQueue::Begin;
    local_->queue.post(
        local_call(hosted),
        [request, staged](const Status& status) { request->complete(staged ? staged->finish(status) : status); },
        next == Next::large ? Begin::later : Begin::now);
    return {};
  }
  auto operation = make_operation(hosted);
  operation->on_done = [request](const Status& status) { request->complete(status); };
  if (staged) {
    operation->staged = staged;
    operation->on_done = [staged, done = complete_from_outside(request)](const Status& status) {
      staged->finish(status, done);
    };
  }
  if (!thread_->submit([o = std::move(operation)](Communicator& c) mutable { c.submit(std::move(o)); }, next))
    return fail(Errc::aborted, "the communicator is over");
  if (staged && !whole) staged->begin();
  return {};
}

Status Comm::start(const CheckedCall& call, std::shared_ptr<gpu::DirectCall> direct,
                   const std::shared_ptr<Request>& request, Next next) {
  auto operation = make_operation(call);
  operation->direct = direct;
  operation->on_done = [direct = std::move(direct), done = complete_from_outside(request)](const Status& status) {
    direct->finish(status, done);
  };
  if (thread_->submit([o = std::move(operation)](Communicator& c) mutable { c.submit(std::move(o)); }, next)) return {};
  return fail(Errc::aborted, "the communicator is over");
}

Status Comm::start(std::optional<std::uint32_t> peer, Message message, const std::shared_ptr<Request>& request,
                   Next next) {
  if (auto ok = may_start(); !ok) return ok;
  const std::size_t bytes = message.count * size_of(message.dtype);
  auto made = stager_->stage({.send = message.send,
                              .send_bytes = message.sends ? bytes : 0,
                              .recv = message.recv,
                              .recv_bytes = message.sends ? 0 : bytes});
  if (!made) return std::unexpected(made.error());
  if (peer) {
    request->note_peer(*peer);
  } else {
    message.on_source = [request](std::uint32_t source) { request->note_peer(source); };
  }
  message.on_done = [request](const Status& status) { request->complete(status); };
  if (const std::shared_ptr<gpu::StagedCall> staged = std::move(*made)) {
    if (auto ok = staged->download(); !ok) return ok;
    message.send = staged->host().send;
    message.recv = staged->host().recv;
    message.on_done = [staged, done = complete_from_outside(request)](const Status& status) {
      staged->finish(status, done);
    };
  }
  const bool queued = thread_->submit(
      [peer, m = std::move(message)](Communicator& c) mutable {
        if (m.sends) return c.send_message(*peer, std::move(m));
        c.receive_message(peer, std::move(m));
      },
      next);
  if (queued) return {};
  return fail(Errc::aborted, "the communicator is over");
}

bool Comm::wait_without_other_work(Request& request, std::optional<Request::TimePoint> deadline, bool comes_back) {
  if (!request.local()) return thread_->wait(request, deadline, comes_back);
  return local_->queue.wait([&] { return request.done(); }, deadline);
}

bool Comm::wait(Request& request, std::optional<Request::TimePoint> deadline) {
  if (!while_waiting_) return wait_without_other_work(request, deadline, false);
  const auto begin = std::chrono::steady_clock::now();
  auto now = begin;
  while (true) {
    const auto until = now + while_waiting_(now - begin);
    const bool comes_back = !deadline || until < *deadline;
    if (wait_without_other_work(request, comes_back ? until : deadline, comes_back)) return true;
    now = std::chrono::steady_clock::now();
    if (deadline && now >= *deadline) return false;
  }
}

// Keeps the request in the table during the wait, so that stop() can end it.
Status Comm::ask(std::function<void(Communicator&, Done)> question) {
  const auto request = std::make_shared<Request>(errors_);
  tributary_request* handle = requests().insert(request);
  if (handle == nullptr) return fail(Errc::exhausted, "there are too many requests at once");
  const bool queued = thread_->submit(
      [question = std::move(question), request](Communicator& c) {
        question(c, [request](const Status& status) { request->complete(status); });
      },
      Next::leave);
  if (!queued) request->complete(fail(Errc::aborted, "the communicator is over"));
  static_cast<void>(wait(*request));
  requests().remove(handle);
  return request->outcome();
}

std::unique_ptr<transport::KeptMemory> Comm::keep_registered(std::span<const std::byte> memory) const {
  return thread_->keep_registered(memory);
}

std::string Comm::announce(RegisteredMemory& memory) {
  std::vector<std::shared_ptr<local::Regions>> to;
  bool connected = false;
  if (local_) {
    to = {local_->group->regions()};
  } else {
    static_cast<void>(ask([&](Communicator& c, const Done& done) {
      to = c.regions();
      const CommunicatorInfo info = c.info();
      connected = info.lanes_shared + info.links_shared > 0;
      done({});
    }));
  }
  const auto* at = static_cast<const std::byte*>(memory.address);
  // Lend the memory even without a connection: connections come and go, and a later tree's connections will use it.
  if (!local_) {
    auto range = transport::find_shared({at, memory.bytes});
    if (!range) return range.error().message;
    if (to.empty()) transport::keep_huge_pages(*range);  // else other ranks map it for writing
    memory.lent = thread_->lend(at, std::move(*range));
  }
  if (to.empty()) {
    return memory.lent != nullptr && connected
               ? ""
               : "no other rank of this communicator, and no aggregator, shares memory with this rank";
  }
  for (const auto& regions : to) {
    auto range = transport::find_shared({at, memory.bytes});
    if (!range) return range.error().message;
    auto announced = local::AnnouncedRange::announce(regions, at, std::move(*range));
    if (!announced) return announced.error().message;
    memory.announced.push_back(std::move(*announced));
  }
  return "";
}

Result<CommunicatorInfo> Comm::info() {
  const auto info = std::make_shared<CommunicatorInfo>();
  auto status = ask([info](Communicator& c, const Done& done) {
    *info = c.info();
    done({});
  });
  if (!status) return std::unexpected(status.error());
  info->transport = transport_name_;
  return *info;
}

Status Comm::finalize(bool unless_failed) {
  Phase expected = Phase::open;
  if (!phase_.compare_exchange_strong(expected, Phase::finalizing)) {
    if (expected == Phase::finalized) return {};
    return fail(Errc::bad_argument, "another thread is finalizing this communicator");
  }
  if (local_) local_->queue.drain();
  auto status = ask([this, unless_failed](Communicator& c, Done done) {
    // Check the group, too: the communicator notices its failure a little later than the calls do.
    const bool failed = c.error() || (local_ && local_->group->failed());
    if (unless_failed && failed) return done({});
    c.finalize(std::move(done));
  });
  stager_->drain();
  phase_.store(Phase::finalized);
  return status;
}

Status Comm::destroy() {
  Status status;
  if (phase_.load() == Phase::open) status = finalize(true);
  stop();
  return status;
}

void Comm::abort(const std::string& reason) {
  phase_.store(Phase::finalized);
  if (local_) {
    local_->group->fail({Errc::aborted, "rank " + std::to_string(rank_) + " aborted: " + reason});
  }
  static_cast<void>(thread_->submit([reason](Communicator& c) { c.abort(reason); }));
  stop();
}

// Ends everything. If a request enters the table after end_requests(), the thread has ended, and the call that made the
// request removes it again.
void Comm::stop() {
  if (local_) {
    local_->queue.close({Errc::aborted, "rank " + std::to_string(rank_) +
                                            " destroyed or aborted the communicator while this was outstanding"});
  }
  thread_->stop();
  const std::uint64_t id = errors_->id();
  memories().remove_if([id](const RegisteredMemory& m) { return m.comm_id == id; }, [](RegisteredMemory&) {});
}

}  // namespace tributary::client
