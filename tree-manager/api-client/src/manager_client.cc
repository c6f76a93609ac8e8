#include "tributary/manager_client/manager_client.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "service-kit/http/http_client.h"
#include "service-kit/http/percent.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager_client {
namespace {

using nlohmann::json;
using service::HttpAnswer;
using service::HttpUrl;

constexpr service::HttpServerWords kWords{
    .name = "the manager",
    .advice = "check that tributary-manager runs there and that the URL is right",
    .kind = "manager URL",
    .default_port = "7470",
};
constexpr std::size_t kManagersMax = 16;
constexpr std::chrono::milliseconds kRoundPause{200};

Errc errc_of(unsigned status) noexcept {
  switch (status) {
    case 401:
    case 403:
      return Errc::denied;
    case 404:
    case 410:
      return Errc::peer_gone;
    case 409:
      return Errc::mismatch;
    case 429:
    case 503:
      return Errc::retry;
    case 507:
      return Errc::exhausted;
    default:
      return status >= 500 ? Errc::io : Errc::bad_argument;
  }
}

/// Returns the text of a member that may be missing; an older manager does not send some of them.
std::string text_if_any(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Returns the sentence in {"error": {"message": ...}}, with the code of its reason; empty if the body has none.
std::string message_of(const std::string& body) {
  const json answer = json_or_discarded(body);
  if (!answer.is_object() || !answer.contains("error")) return {};
  return coded(text_if_any(answer["error"], "reason_code"), text_if_any(answer["error"], "message"));
}

/// True if the manager refused the call, before it changed anything, because it does not know a leader or because its
/// store blocks an earlier change. The same call may succeed a moment later.
bool passes_by_itself(const HttpAnswer& answer) {
  if (answer.status != 503) return false;
  const json body = json_or_discarded(answer.body);
  if (!body.is_object() || !body.contains("error")) return false;
  const std::string code = text_if_any(body["error"], "reason_code");
  return code == code_of(Reason::no_leader) || code == code_of(Reason::store_blocked);
}

std::uint64_t fence_in(const json& answer) {
  if (!answer.is_object()) return 0;
  const auto found = answer.find("fence");
  const bool good = found != answer.end() && found->is_number_unsigned() && found->get<std::uint64_t>() <= kFenceMax;
  return good ? found->get<std::uint64_t>() : 0;
}

Result<std::vector<HttpUrl>> parse_urls(std::string_view list) {
  std::vector<HttpUrl> urls;
  for (const auto part : std::views::split(list, ',')) {
    auto url = service::parse_url(std::string_view(part), kWords);
    if (!url) return std::unexpected(url.error());
    urls.push_back(std::move(*url));
  }
  if (urls.empty())
    return fail(Errc::bad_argument, "'' is no manager URL: it is empty; write http://host:7470, or https://");
  if (urls.size() <= kManagersMax) return urls;
  return fail(Errc::bad_argument, "the list of managers has " + std::to_string(urls.size()) + " URLs; at most " +
                                      std::to_string(kManagersMax) + " are possible");
}

/// Reads members of the manager's answers. If a member is missing or has the wrong type, the whole answer is
/// corrupt.
class Answer {
 public:
  explicit Answer(const json& object) : object_(object) {}
  template <class T>
  T number(const char* name) {
    const json* member = find(name);
    if (member == nullptr) return T{};
    if (!member->is_number_unsigned() || member->get<std::uint64_t>() > std::numeric_limits<T>::max()) {
      return complain(name), T{};
    }
    return member->get<T>();
  }
  std::string text(const char* name) {
    const json* member = find(name);
    if (member == nullptr) return {};
    if (!member->is_string()) return complain(name), std::string{};
    return member->get<std::string>();
  }
  bool flag(const char* name) {
    const json* member = find(name);
    if (member == nullptr) return false;
    if (!member->is_boolean()) return complain(name), false;
    return member->get<bool>();
  }
  [[nodiscard]] std::optional<Error> error() const {
    if (wrong_.empty()) return std::nullopt;
    return Error{Errc::corrupt, "the manager's answer has no usable '" + wrong_ +
                                    "'; are this program and the manager of the same version?"};
  }

 private:
  const json* find(const char* name) {
    const auto it = object_.is_object() ? object_.find(name) : object_.end();
    if (!object_.is_object() || it == object_.end()) return complain(name), nullptr;
    return &*it;
  }
  void complain(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }
  const json& object_;
  std::string wrong_;
};

/// Leaves out members that are not needed: an older manager does not know some of them.
json to_json(const AggregatorRegistration& r) {
  json body = {{"name", r.name},
               {"host", r.host},
               {"data", to_string(r.data)},
               {"http", to_string(r.http)},
               {"memory_bytes", r.memory_bytes},
               {"children_max", r.children_max},
               {"line_rate_bits_per_second", r.line_rate_bits_per_second},
               {"version", r.version},
               {"exchange_key", r.exchange_key == ExchangePublicKey{} ? "" : to_base64(r.exchange_key)}};
  for (const Endpoint& more : r.data_more) body["data_more"].push_back(to_string(more));
  if (!r.data_down.empty()) body["data_down"] = r.data_down;
  if (r.draining) body["draining"] = true;
  if (r.incarnation != 0) body["incarnation"] = r.incarnation;
  if (r.security != PacketSecurity::off) body["security"] = std::string(to_string(r.security));
  return body;
}

Result<ManagerKeys> keys_in(const json& answer) {
  Answer members(answer);
  const auto key = from_base64(members.text("public_key"));
  const auto exchange = from_base64(members.text("exchange_key"));
  if (const auto error = members.error()) return std::unexpected(*error);
  if (!key || key->size() != kPublicKeyBytes) {
    return fail(Errc::corrupt, "the manager's public key is not base64 of 32 bytes");
  }
  if (!exchange || exchange->size() != kExchangeKeyBytes) {
    return fail(Errc::corrupt, "the manager's exchange key is not base64 of 32 bytes");
  }
  ManagerKeys keys;
  std::ranges::copy(*key, keys.public_key.begin());
  std::ranges::copy(*exchange, keys.exchange_key.begin());
  return keys;
}

json to_json(const GroupRequest& r) {
  json body = {{"job", r.job}, {"ranks", r.hosts}, {"lanes", r.lanes}};
  if (r.lane_weights) body["lane_weights"] = true;
  if (!r.rail.empty()) body["rail"] = r.rail;
  if (r.window != 0) body["window"] = r.window;
  if (r.segment_bytes != 0) body["segment_bytes"] = r.segment_bytes;
  if (r.form_senders != FormSenders::nobody) body["form_senders"] = std::string(to_string(r.form_senders));
  if (r.levels != 0) body["levels"] = r.levels;
  if (!r.priority.empty()) body["priority"] = r.priority;
  if (r.link_rate_bits_per_second != 0) body["link_rate_bits_per_second"] = r.link_rate_bits_per_second;
  if (!r.request_id.empty()) body["request_id"] = r.request_id;
  if (!r.user.empty()) body["user"] = r.user;
  if (r.processes != 0) body["processes"] = r.processes;
  if (!r.aggregator.empty()) body["aggregator"] = r.aggregator;
  if (r.packet_security != PacketSecurity::off) {
    body["packet_security"] = std::string(to_string(r.packet_security));
  }
  if (r.packet_security != PacketSecurity::off || r.exchange_key != ExchangePublicKey{})
    body["exchange_key"] = to_base64(r.exchange_key);
  return body;
}

Result<GroupAnswer> group_answer(const Result<json>& answer) {
  if (!answer) return std::unexpected(answer.error());
  auto descriptor = group_descriptor_from_json(*answer);
  if (!descriptor) return std::unexpected(descriptor.error());
  Answer members(*answer);
  GroupAnswer result{std::move(*descriptor), members.text("record"),
                     members.number<std::uint32_t>("retry_after_seconds")};
  result.descriptor.reason = coded(text_if_any(*answer, "code"), std::move(result.descriptor.reason));
  if (const auto error = members.error()) return std::unexpected(*error);
  return result;
}

std::string lease_path(std::uint64_t group) {
  return "/v1/groups/" + std::to_string(group) + "/lease";
}

Result<std::vector<LateRank>> late_ranks_in(const json& list) {
  if (!list.is_array() || list.size() > kLateRanksMax) {
    return fail(Errc::corrupt, "the manager's answer has no usable 'late'");
  }
  std::vector<LateRank> late;
  for (const json& one : list) {
    Answer members(one);
    const auto time = [&members](const char* name) {
      return std::chrono::milliseconds(std::min<std::uint64_t>(members.number<std::uint64_t>(name), UINT32_MAX));
    };
    late.push_back({.rank = members.number<std::uint32_t>("rank"),
                    .host = members.text("host"),
                    .lag = time("lag_milliseconds"),
                    .late_for = time("late_milliseconds"),
                    .operations_behind = members.number<std::uint64_t>("operations_behind"),
                    .cause = late_cause_from_string(one.value("cause", ""))});
    if (const auto error = members.error()) return std::unexpected(*error);
  }
  return late;
}

Result<GroupLease> group_lease(const Result<json>& answer, bool with_record) {
  if (!answer && answer.error().code == Errc::peer_gone) return GroupLease{};
  if (!answer) return std::unexpected(answer.error());
  Answer members(*answer);
  GroupLease lease{.known = true,
                   .lease_seconds = members.number<std::uint32_t>("lease_seconds"),
                   .epoch = members.number<std::uint32_t>("epoch"),
                   .rebuild_advised = members.flag("rebuild_advised"),
                   .reason = coded(text_if_any(*answer, "code"), members.text("reason")),
                   .record = with_record ? members.text("record") : ""};
  if (answer->is_object() && answer->contains("leave_trees")) lease.leave_trees = members.flag("leave_trees");
  if (const auto error = members.error()) return std::unexpected(*error);
  if (const auto rates = answer->find("rates"); rates != answer->end()) {
    const auto read = path_rates_from_json(*rates);
    if (!read) return std::unexpected(read.error());
    lease.rates = *read;
  }
  if (const auto late = answer->find("late"); late != answer->end()) {
    auto read = late_ranks_in(*late);
    if (!read) return std::unexpected(read.error());
    lease.late = std::move(*read);
  }
  return lease;
}

/// Returns how many late ranks this manager takes with a renewal; 0 from an older manager, which refuses them.
std::size_t late_max_in(const json& answer) {
  const auto found = answer.find("late_max");
  if (found == answer.end() || !found->is_number_unsigned()) return 0;
  return std::min<std::size_t>(found->get<std::uint64_t>(), kLateRanksMax);
}

void add_late(json& load, const std::vector<LateRank>& late, std::size_t late_max) {
  const auto count = [](std::chrono::milliseconds time) {
    return std::clamp<std::int64_t>(time.count(), 0, UINT32_MAX);
  };
  for (const LateRank& one : late | std::views::take(late_max)) {
    load["late"].push_back({{"group", one.group},
                            {"rank", one.rank},
                            {"lag_milliseconds", count(one.lag)},
                            {"late_milliseconds", count(one.late_for)},
                            {"operations_behind", std::min<std::uint64_t>(one.operations_behind, UINT32_MAX)},
                            {"cause", row_of(one.cause).name}});
  }
}

bool can_be_token(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c <= ' ' || c == 127; });
}

}  // namespace

Result<std::shared_ptr<service::TlsContext>> tls_for(std::string_view urls, const service::TlsFiles& files) {
  if (!urls.contains("https://")) return nullptr;
  return service::TlsContext::open(service::TlsContext::Side::client, files);
}

struct ManagerClient::Impl {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;
  using Outcome = Result<json>;

  /// The state of one call, which tries the managers one after the other.
  struct Call {
    std::string_view method, path;
    std::string body;
    Clock::time_point deadline;
    std::optional<Outcome> stale{};  // an answer with a lower fence, used if no better answer comes
    bool again = false;              // in this round, a manager has refused for a reason that passes by itself
    std::optional<Outcome>
        refusal{};  // the last such refusal, for the caller if the last try has no time for an answer
    Outcome last = fail(Errc::retry, "no manager was asked");
  };

  Impl(ManagerSettings with, std::vector<HttpUrl> at)
      : settings(std::move(with)), urls(std::move(at)), token(settings.token), http(kWords, settings.tls) {}

  const ManagerSettings settings;
  const std::vector<HttpUrl> urls;
  std::string token;        // only calls use it, which are serialised
  std::size_t current = 0;  // manager that answered last; only calls use it, which are serialised
  service::HttpClient http;
  std::mutex serial;
  std::atomic<std::uint64_t> fence{0};       // the highest fence seen
  std::atomic<std::uint64_t> last_fence{0};  // fence of the last answer that had one
  std::atomic<std::size_t> late_max{0};      // late ranks that the last answer to an aggregator offered to take

  void note_fence(std::uint64_t seen) noexcept {
    for (auto known = fence.load(); seen > known && !fence.compare_exchange_weak(known, seen);) {
    }
  }

  Result<HttpAnswer> exchange(const HttpUrl& url, const Call& call, Milliseconds limit) {
    return http.run(url, {.method = std::string(call.method),
                          .target = std::string(call.path),
                          .authorization = token.empty() ? "" : "Bearer " + token,
                          .body = call.body,
                          .connect_limit = std::min(settings.connect_limit, limit),
                          .request_limit = limit,
                          .answer_bytes_max = settings.answer_bytes_max,
                          .keep_alive = url.secure});
  }

  /// The token may have been changed while this process ran. Returns whether there is another one.
  bool has_fresh_token() {
    if (!settings.fresh_token) return false;
    std::string fresh = settings.fresh_token();
    if (fresh.empty() || fresh == token || !can_be_token(fresh)) return false;
    token = std::move(fresh);
    return true;
  }

  Outcome call_once(std::string_view method, std::string_view path, const std::string& body) {
    Call call{.method = method, .path = path, .body = body, .deadline = Clock::now() + settings.request_limit};
    return go_round(call);
  }

  Outcome call(std::string_view method, std::string_view path, const json& body) {
    try {
      const std::lock_guard one_at_a_time(serial);
      const std::string text = body.is_null() ? std::string{} : body.dump();
      Outcome outcome = call_once(method, path, text);
      const bool refused = !outcome && outcome.error().code == Errc::denied;
      if (refused && has_fresh_token()) return call_once(method, path, text);
      return outcome;
    } catch (const std::exception& error) {  // lack of memory or descriptors, text that is not UTF-8
      return fail(Errc::io,
                  std::string(method) + " " + urls[current].text + std::string(path) + " failed here: " + error.what());
    }
  }

  /// Asks one manager. Sets `settled` to whether the answer ends the call.
  Outcome ask(const HttpUrl& url, Call& call, Milliseconds limit, bool& settled) {
    const auto answer = exchange(url, call, limit);
    if (!answer) {
      settled = answer.error().code != Errc::unreachable;
      return std::unexpected(answer.error());
    }
    auto outcome = understand(url, call, *answer);
    const std::uint64_t shown = outcome ? fence_in(*outcome) : 0;
    const bool stale = shown != 0 && shown < fence.load();
    if (shown != 0) last_fence.store(shown);
    note_fence(shown);
    const bool again = passes_by_itself(*answer);
    call.again = call.again || again;
    if (again) call.refusal = outcome;
    settled = !again && !stale;
    if (stale) call.stale = outcome;
    return outcome;
  }

  Outcome go_round(Call& call) {
    const Milliseconds share = settings.request_limit / static_cast<int>(urls.size());
    const std::size_t first = current;
    while (true) {
      call.again = false;
      for (std::size_t i = 0; i < urls.size(); ++i) {
        const auto left = std::chrono::ceil<Milliseconds>(call.deadline - Clock::now());
        if (left.count() <= 0) return call.stale.value_or(call.refusal.value_or(call.last));
        bool settled = false;
        current = (first + i) % urls.size();
        call.last = ask(urls[current], call, std::min(left, share), settled);
        if (settled) return call.last;
      }
      if (call.stale) return *call.stale;
      if (!call.again) return Clock::now() < call.deadline ? call.last : call.refusal.value_or(call.last);
      if (!http.wait(kRoundPause)) return call.last;
    }
  }

  Outcome understand(const HttpUrl& url, const Call& call, const HttpAnswer& answer) const {
    if (answer.status < 200 || answer.status >= 300) {
      std::string message = message_of(answer.body);
      if (message.empty()) message = "no reason was given";
      return fail(errc_of(answer.status), "the manager at " + url.text + " answered " + std::string(call.method) + " " +
                                              std::string(call.path) + " with " + std::to_string(answer.status) + ": " +
                                              message);
    }
    if (answer.body.empty()) return json(nullptr);
    // The limits for an answer with tokens of every rank and lane: many values, with few bytes each.
    auto parsed = read_json(answer.body, {.bytes_max = settings.answer_bytes_max, .values_max = 1U << 24});
    if (!parsed) {
      return fail(Errc::corrupt, "the answer of " + url.text + std::string(call.path) +
                                     " is not JSON; is it a Tributary manager? (" + parsed.error().message + ")");
    }
    return parsed;
  }

  /// Tells a manager of a fence that is higher than the fence in its last answer: its store may have been restored from
  /// a backup. An older manager, whose answers have no fence, is not told.
  void add_fence(json& body) const {
    const std::uint64_t last = last_fence.load();
    if (last != 0 && last < fence.load()) body["fence"] = fence.load();
  }
};

ManagerClient::ManagerClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ManagerClient::ManagerClient(ManagerClient&&) noexcept = default;
ManagerClient& ManagerClient::operator=(ManagerClient&&) noexcept = default;
ManagerClient::~ManagerClient() = default;

Result<ManagerClient> ManagerClient::create(ManagerSettings settings) {
  auto urls = parse_urls(settings.url);
  if (!urls) return std::unexpected(urls.error());
  while (!settings.token.empty() && (settings.token.back() == '\n' || settings.token.back() == '\r')) {
    settings.token.pop_back();
  }
  if (!can_be_token(settings.token)) {
    return fail(Errc::bad_argument,
                "the manager token holds a space or a control character; give only the content of the token file");
  }
  if (!settings.tls && std::ranges::any_of(*urls, &HttpUrl::secure)) {
    return fail(Errc::bad_config, "no CA is given by which to believe the manager at " + settings.url +
                                      "; name its file in TRIBUTARY_TLS_CA");
  }
  return ManagerClient(std::make_unique<Impl>(std::move(settings), std::move(*urls)));
}

Result<RegistrationAnswer> ManagerClient::register_aggregator(const AggregatorRegistration& registration) {
  json body = to_json(registration);
  impl_->add_fence(body);
  const auto answer = request("POST", "/v1/aggregators", body);
  if (!answer) return std::unexpected(answer.error());
  impl_->late_max = late_max_in(*answer);
  Answer members(*answer);
  RegistrationAnswer result;
  result.name = members.text("name");
  result.incarnation = members.number<std::uint64_t>("incarnation");
  result.lease_seconds = members.number<std::uint32_t>("lease_seconds");
  if (const auto error = members.error()) return std::unexpected(*error);
  const auto keys = keys_in(*answer);
  if (!keys) return std::unexpected(keys.error());
  result.keys = *keys;
  return result;
}

Result<AggregatorState> ManagerClient::renew_aggregator(std::string_view name, std::uint64_t incarnation,
                                                        const AggregatorLoad& load,
                                                        const std::vector<std::uint32_t>& data_down, bool draining,
                                                        std::optional<ManagerKeys>* keys) {
  json body = {{"incarnation", incarnation},
               {"draining", draining},
               {"load",
                {{"memory_in_use_bytes", load.memory_in_use_bytes},
                 {"lanes_active", load.lanes_active},
                 {"sessions", load.sessions},
                 {"contribution_bytes_total", load.contribution_bytes_total}}}};
  if (!data_down.empty()) body["data_down"] = data_down;
  if (load.changed_records != 0) body["load"]["changed_records"] = load.changed_records;
  add_late(body["load"], load.late, impl_->late_max);
  impl_->add_fence(body);
  const auto answer = request("PUT", "/v1/aggregators/" + service::percent_encode(name) + "/lease", body);
  if (!answer && answer.error().code == Errc::peer_gone) return AggregatorState::unknown;
  if (!answer) return std::unexpected(answer.error());
  Answer members(*answer);
  impl_->late_max = late_max_in(*answer);
  const std::string state = members.text("state");
  if (const auto error = members.error()) return std::unexpected(*error);
  if (keys != nullptr) {
    keys->reset();
    if (answer->contains("public_key")) {
      const auto shown = keys_in(*answer);
      if (!shown) return std::unexpected(shown.error());
      *keys = *shown;
    }
  }
  return state == "draining" ? AggregatorState::draining : AggregatorState::active;
}

Status ManagerClient::unregister_aggregator(std::string_view name) {
  const auto answer = request("DELETE", "/v1/aggregators/" + service::percent_encode(name), nullptr);
  if (!answer) return std::unexpected(answer.error());
  return {};
}

Result<GroupAnswer> ManagerClient::request_group(const GroupRequest& group) {
  return group_answer(request("POST", "/v1/groups", to_json(group)));
}

Result<TokenPage> ManagerClient::group_places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first,
                                              std::uint32_t count) {
  const auto answer = request("GET",
                              "/v1/groups/" + std::to_string(group) + "/tokens?epoch=" + std::to_string(epoch) +
                                  "&from=" + std::to_string(first) + "&count=" + std::to_string(count),
                              nullptr);
  if (!answer) return std::unexpected(answer.error());
  auto page = token_page_from_json(*answer);
  if (!page) return page;
  const bool asked_for = page->group == group && page->epoch == epoch && page->first_rank == first &&
                         !page->lanes.empty() && page->lanes[0].size() == count;
  if (!asked_for) return fail(Errc::corrupt, "the manager gave tokens of other ranks than were asked for");
  return page;
}

Result<GroupAnswer> ManagerClient::rebuild_group(std::uint64_t group, std::uint32_t epoch,
                                                 const std::vector<std::string>& failed, bool in_use) {
  json body = {{"epoch", epoch}, {"failed", failed}};
  if (in_use) body["in_use"] = true;
  return group_answer(request("POST", "/v1/groups/" + std::to_string(group) + "/rebuild", body));
}

Result<GroupLease> ManagerClient::renew_group(std::uint64_t group, bool want_record,
                                              const std::optional<GroupTraffic>& traffic) {
  json body;  // null: no body is sent
  if (want_record) body["want_record"] = true;
  if (traffic) {
    body["traffic"] = {{"operations", traffic->operations},
                       {"bytes_in_network", traffic->bytes_in_network},
                       {"bytes_between_ranks", traffic->bytes_between_ranks},
                       {"bytes_in_shared_memory", traffic->bytes_in_shared_memory}};
  }
  return group_lease(request("PUT", lease_path(group), body), want_record);
}

Result<GroupLease> ManagerClient::adopt_group(std::uint64_t group, const std::string& record,
                                              const std::vector<std::string>& hosts) {
  return group_lease(request("PUT", lease_path(group), {{"record", record}, {"ranks", hosts}}), false);
}

Status ManagerClient::delete_group(std::uint64_t group, const std::vector<std::string>& lost) {
  std::string path = "/v1/groups/" + std::to_string(group);
  for (std::size_t i = 0; i < std::min(lost.size(), kLostMax); ++i) path += (i == 0 ? "?failed=" : ",") + lost[i];
  const auto answer = request("DELETE", path, nullptr);
  if (!answer) return std::unexpected(answer.error());
  return {};
}

Result<json> ManagerClient::get(std::string_view path) {
  return request("GET", path, nullptr);
}

Result<json> ManagerClient::request(std::string_view method, std::string_view path, const json& body) {
  const bool plain = path.starts_with('/') && path.find_first_of(" \r\n\t") == std::string_view::npos;
  if (!plain)
    return fail(Errc::bad_argument,
                "'" + std::string(path) + "' is no path: a path begins with a slash and holds no space");
  return impl_->call(method, path, body);
}

std::uint64_t ManagerClient::fence() const noexcept {
  return impl_->fence.load();
}

void ManagerClient::note_fence(std::uint64_t fence) noexcept {
  impl_->note_fence(fence);
}

void ManagerClient::cancel() noexcept {
  impl_->http.cancel();
}

}  // namespace tributary::manager_client
