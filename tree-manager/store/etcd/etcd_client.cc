#include "tree-manager/store/etcd/etcd_client.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

using nlohmann::json;
using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr service::HttpServerWords kWords{
    .name = "etcd",
    .advice = "check that it runs there and that the setting etcd names its client URLs",
    .kind = "etcd URL",
    .default_port = "2379",
};
constexpr std::uint64_t kAnswerBytesMax = 256U << 20;
constexpr milliseconds kPause{50};  // between two rounds of all members

// Numbers of gRPC's status codes, which the gateway passes on.
constexpr int kNone = 0;  // the answer is not etcd's own, but that of a proxy before it
constexpr int kInvalidArgument = 3;
constexpr int kNotFound = 5;
constexpr int kAlreadyExists = 6;
constexpr int kDenied = 7;
constexpr int kExhausted = 8;
constexpr int kFailedPrecondition = 9;
constexpr int kOutOfRange = 11;
constexpr int kUnimplemented = 12;
constexpr int kDataLoss = 15;
constexpr int kUnauthenticated = 16;
constexpr unsigned kRequestTimeout = 408;  // HTTP's status

Errc errc_of(int code, std::string_view message) {
  if (message.contains("requested lease not found")) return Errc::peer_gone;
  if (code == kNotFound) return Errc::peer_gone;
  if (code == kDenied || code == kUnauthenticated || message.contains("invalid auth token") ||
      message.contains("authentication failed")) {
    return Errc::denied;
  }
  if (code == kExhausted || message.contains("database space exceeded")) return Errc::exhausted;
  return Errc::io;
}

/// True if this error of the kind io says that etcd has not made a change. After another, such as that of a proxy that
/// has waited too long or of a stream that has broken, etcd may have made it, or may still make it.
bool is_refusal(unsigned status, int code) {
  switch (code) {
    case kInvalidArgument:
    case kAlreadyExists:
    case kFailedPrecondition:
    case kOutOfRange:
    case kUnimplemented:
    case kDataLoss:
      return true;
    case kNone:
      return status >= 300 && status < 500 && status != kRequestTimeout;
    default:
      return false;
  }
}

/// True if another endpoint, or the same endpoint later, may succeed, or if the answer leaves open what etcd has done.
bool is_passing(const service::HttpAnswer& answer, int code, std::string_view message) {
  for (const std::string_view text : {"request timed out", "leader changed", "no leader", "not leader", "stopped"}) {
    if (message.contains(text)) return true;
  }
  return errc_of(code, message) == Errc::io && !is_refusal(answer.status, code);
}

/// Returns the smallest key above all keys that begin with `prefix`.
std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace

std::uint64_t etcd_number(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) return 0;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  if (!found->is_string()) return 0;
  const std::string& text = found->get_ref<const std::string&>();
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string to_base64_text(std::string_view text) {
  return to_base64(std::as_bytes(std::span(text)));
}

Result<std::string> etcd_text(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) return std::string{};
  if (!found->is_string()) return fail(Errc::corrupt, "etcd's answer has no usable '" + std::string(name) + "'");
  const auto bytes = from_base64(found->get_ref<const std::string&>());
  if (!bytes) return fail(Errc::corrupt, "etcd's answer: '" + std::string(name) + "' is no base64");
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

EtcdClient::EtcdClient(EtcdSettings settings, std::vector<service::HttpUrl> urls,
                       std::shared_ptr<service::TlsContext> tls)
    : settings_(std::move(settings)), urls_(std::move(urls)), http_(kWords, std::move(tls)) {}
EtcdClient::~EtcdClient() = default;

Result<std::vector<service::HttpUrl>> EtcdClient::urls_of(const EtcdSettings& settings) {
  std::vector<service::HttpUrl> urls;
  for (const std::string& endpoint : settings.endpoints) {
    auto url = service::parse_url(endpoint, kWords);
    if (!url) return fail(Errc::bad_config, "etcd: " + url.error().message);
    urls.push_back(std::move(*url));
  }
  if (urls.empty()) return fail(Errc::bad_config, "etcd: at least one URL is needed");
  return urls;
}

Result<std::unique_ptr<EtcdClient>> EtcdClient::create(const EtcdSettings& settings) {
  auto urls = urls_of(settings);
  if (!urls) return std::unexpected(urls.error());
  if (std::ranges::none_of(*urls, &service::HttpUrl::secure))
    return std::unique_ptr<EtcdClient>(new EtcdClient(settings, std::move(*urls), nullptr));
  auto tls = service::TlsContext::open(service::TlsContext::Side::client, settings.tls);
  if (!tls) return fail(Errc::bad_config, "etcd: " + tls.error().message);
  return std::unique_ptr<EtcdClient>(new EtcdClient(settings, std::move(*urls), std::move(*tls)));
}

std::string EtcdClient::key(std::string_view name) const {
  return to_base64_text(settings_.prefix + std::string(name));
}

std::string EtcdClient::end_of(std::string_view name) const {
  return to_base64_text(end_of_prefix(settings_.prefix + std::string(name)));
}

Result<json> EtcdClient::understand(const std::string& path, const service::HttpAnswer& answer) const {
  json body = json::parse(answer.body, nullptr, false);
  const bool object = body.is_object();
  if (answer.status == 200 && object && !body.contains("error")) return body;
  // The error of a streaming call is nested one level deeper.
  const json& error = object && body.contains("error") && body["error"].is_object() ? body["error"] : body;
  const auto text = [&](const char* name) {
    return error.is_object() && error.contains(name) && error[name].is_string() ? error[name].get<std::string>() : "";
  };
  std::string message = text("message");
  if (message.empty()) message = text("error");
  const char* const code_name = error.is_object() && error.contains("grpc_code") ? "grpc_code" : "code";
  const int code = static_cast<int>(etcd_number(error, code_name));
  const std::string where = "etcd at " + urls_[current_].text + " answered " + path + " with " +
                            std::to_string(answer.status) + ": " + (message.empty() ? "no reason was given" : message);
  if (is_passing(answer, code, message)) return fail(Errc::unreachable, where);
  return fail(errc_of(code, message), where);
}

Result<json> EtcdClient::ask(const std::string& path, const std::string& body, milliseconds limit, bool& unsure) {
  const auto answer = http_.run(urls_[current_], {.method = "POST",
                                                  .target = path,
                                                  .authorization = login_,
                                                  .body = body,
                                                  .connect_limit = limit,
                                                  .request_limit = limit,
                                                  .answer_bytes_max = kAnswerBytesMax,
                                                  .keep_alive = true});
  if (!answer) return std::unexpected(answer.error());
  if (answer->sent_twice) unsure = true;
  return understand(path, *answer);
}

Status EtcdClient::log_in(milliseconds limit) {
  login_.clear();
  const json body = {{"name", settings_.user}, {"password", settings_.password}};
  bool unsure = false;
  const auto answer = ask("/v3/auth/authenticate", body.dump(), limit, unsure);
  if (!answer) return std::unexpected(answer.error());
  login_ = answer->value("token", "");
  return {};
}

Result<json> EtcdClient::call(const std::string& path, const json& body, milliseconds limit) {
  const std::lock_guard lock(mutex_);
  const std::string text = body.dump();
  const auto deadline = Steady::now() + limit;
  Result<json> last = fail(Errc::unreachable, "etcd was not asked");
  bool logged_in_anew = false;
  bool unsure = false;  // an attempt got no answer that says what etcd has done: etcd may still make the change
  while (true) {
    for (std::size_t i = 0; i < urls_.size(); ++i) {
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - Steady::now());
      // A last attempt that has no time for an answer would hide the reason why the attempt before it failed.
      if (left.count() <= 0 || (unsure && left < kPause)) return last;
      const milliseconds attempt = std::min(left, settings_.attempt_limit);
      if (!settings_.user.empty() && login_.empty()) {
        if (auto ok = log_in(attempt); !ok) last = std::unexpected(ok.error());
      }
      if (settings_.user.empty() || !login_.empty()) last = ask(path, text, attempt, unsure);
      // A user's token ends after some time, or when the member of etcd that gave it ends.
      if (!last && last.error().code == Errc::denied && !login_.empty() && !std::exchange(logged_in_anew, true)) {
        login_.clear();
        --i;
        continue;
      }
      if (last) return last;
      if (last.error().code != Errc::unreachable) return unsure ? fail(Errc::unreachable, last.error().message) : last;
      unsure = true;
      current_ = (current_ + 1) % urls_.size();
    }
    if (!http_.wait(kPause)) return last;
  }
}

}  // namespace tributary::manager
