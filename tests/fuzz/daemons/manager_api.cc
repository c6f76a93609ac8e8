// The manager's REST interface behind its HTTP parser: any method, path and body, from callers with every token and
// role. Streams of events are read for some turns.
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/manager/cluster_fixture.h"
#include "tree-manager/api/api.h"
#include "tree-manager/api/audit_log.h"

using namespace tributary;
using namespace tributary::manager;

namespace {

/// Keeps the manager's last log lines and prints them when an input breaks the manager; all lines would be too many.
class LastWords {
 public:
  LastWords() : kept_(std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kLines)) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("manager", kept_));
  }
  [[noreturn]] void tell_and_abort(const char* why) const {
    for (const std::string& line : kept_->last_formatted()) std::fputs(line.c_str(), stderr);
    std::fprintf(stderr, "%s\n", why);
    std::abort();
  }

 private:
  static constexpr std::size_t kLines = 32;
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> kept_;
};
const LastWords last_words;

const IdentityKeys& identity_keys() {
  static const IdentityKeys keys = *IdentityKeys::parse("k " + std::string(64, '1'));
  return keys;
}

AuditLog* audit_log() {
  static const std::unique_ptr<AuditLog> log = *AuditLog::open("/dev/null");
  return log.get();
}

/// Returns what stands in the header Authorization: "@ROLE" is a token of this role, and other texts are themselves.
std::string authorization_of(const std::string& text, std::int64_t now_s) {
  if (!text.starts_with('@')) return text;
  const auto role = role_from_string(text.substr(1));
  if (!role) return text;
  const auto token = identity_keys().sign({.id = "1",
                                           .name = "somebody",
                                           .role = *role,
                                           .tenant = *role == Role::tenant ? "physics" : "",
                                           .from = now_s,
                                           .until = now_s + 4,
                                           .life = 4,
                                           .renewable_until = now_s + 8});
  return token ? "Bearer " + *token : text;
}

/// A manager's parts. Each input gets new ones, so that its outcome does not depend on earlier inputs.
struct Service {
  MemoryStore store;
  ManualClock clock;
  SigningKey key = *SigningKey::from_seed(std::array<std::byte, kPrivateKeyBytes>{});
  ClusterSettings settings;
  std::unique_ptr<Cluster> cluster =
      *Cluster::open(settings, store, key, clock, *parse_topology(leaf_spine_yaml(2, 2, 1), "fuzz"));
  Api api{*cluster,
          {.aggregator_token = "a",
           .job_token = "j",
           .identity_keys = identity_keys(),
           .audit = audit_log(),
           .unix_seconds = [this] { return clock.unix_seconds(); },
           .events = settings.events}};
  std::vector<std::shared_ptr<service::HttpFlow>> streams;

  /// Reads all streams once. Each text of a stream has only whole messages, because a reader may lose the connection
  /// after any text.
  void listen() {
    std::erase_if(streams, [](const auto& stream) {
      const auto text = stream->next();
      if (text && !text->empty() && !text->ends_with("\n\n")) last_words.tell_and_abort("a message that is cut");
      return !text;
    });
  }

  /// `who`: the header Authorization; then, after a tab, the header Last-Event-ID of a request for a stream; then,
  /// after another tab, the header with which other managers pass requests on.
  void call(const std::string& method, const std::string& path, const std::string& who, const std::string& body) {
    const std::size_t question = path.find('?');
    const std::size_t tab = std::min(who.find('\t'), who.size());
    const std::size_t second = std::min(who.find('\t', tab + 1), who.size());
    const auto part = [&](std::size_t from, std::size_t to) { return from < to ? who.substr(from, to - from) : ""; };
    const HttpHead head{.method = method,
                        .path = path.substr(0, question),
                        .query = question == std::string::npos ? "" : path.substr(question + 1),
                        .authorization = authorization_of(who.substr(0, tab), clock.unix_seconds()),
                        .remote_address = "192.0.2.7",
                        .passed_on = part(second + 1, who.size()),
                        .accept = tab < who.size() ? "text/event-stream" : "",
                        .last_event_id = part(tab + 1, second)};
    const Admission admission = api.admit(head);
    const HttpReply reply = admission.refusal                        ? *admission.refusal
                            : body.size() > admission.body_bytes_max ? api.reject(413, "too long")
                                                                     : api.handle(head, body);
    if (reply.status < 200 || reply.status > 599) last_words.tell_and_abort("a status that is none");
    if (reply.status == 500) last_words.tell_and_abort("an exception that nobody expected");
    if (reply.flow) streams.push_back(reply.flow);
    if (reply.content_type == "application/json" && !nlohmann::json::accept(reply.body))
      last_words.tell_and_abort("a body that is no JSON");
  }
};

}  // namespace

// Lines: METHOD PATH WHO, then the body up to a line with a single dot.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384) return 0;
  Service service;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto until = [&](std::string_view end) {
    const std::size_t at = rest.find(end);
    const std::string part(rest.substr(0, at));
    rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + end.size());
    return part;
  };
  for (int calls = 0; !rest.empty() && calls < 16; ++calls) {
    const std::string method = until(" ");
    const std::string path = until(" ");
    const std::string who = until("\n");
    const std::string body = until("\n.\n");
    service.call(method, path, who, body);
    service.listen();
    service.clock.advance(std::chrono::seconds(1));
    service.cluster->tick();
  }
  return 0;
}
