// The manager's REST interface behind its HTTP parser: any method, path and body, from callers with every token.
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/manager/cluster_fixture.h"
#include "tree-manager/api/api.h"

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

/// A manager's parts. Each input gets new ones, so that its outcome does not depend on earlier inputs.
struct Service {
  MemoryStore store;
  ManualClock clock;
  SigningKey key = *SigningKey::from_seed(std::array<std::byte, kPrivateKeyBytes>{});
  std::unique_ptr<Cluster> cluster =
      *Cluster::open({}, store, key, clock, *parse_topology(leaf_spine_yaml(2, 2, 1), "fuzz"));
  Api api{*cluster, {.aggregator_token = "a", .job_token = "j"}};

  void call(const std::string& method, const std::string& path, const std::string& token, const std::string& body) {
    const std::size_t question = path.find('?');
    const HttpHead head{.method = method,
                        .path = path.substr(0, question),
                        .query = question == std::string::npos ? "" : path.substr(question + 1),
                        .authorization = token,
                        .remote_address = "192.0.2.7"};
    const Admission admission = api.admit(head);
    const HttpReply reply = admission.refusal                        ? *admission.refusal
                            : body.size() > admission.body_bytes_max ? api.reject(413, "too long")
                                                                     : api.handle(head, body);
    if (reply.status < 200 || reply.status > 599) last_words.tell_and_abort("a status that is none");
    if (reply.status == 500) last_words.tell_and_abort("an exception that nobody expected");
    if (reply.content_type == "application/json" && !nlohmann::json::accept(reply.body))
      last_words.tell_and_abort("a body that is no JSON");
  }
};

}  // namespace

// Lines: METHOD PATH TOKEN, then the body up to a line with a single dot.
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
    const std::string token = until("\n");
    const std::string body = until("\n.\n");
    service.call(method, path, token, body);
    service.clock.advance(std::chrono::seconds(1));
    service.cluster->tick();
  }
  return 0;
}
