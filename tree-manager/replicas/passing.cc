#include "tree-manager/replicas/passing.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "service-kit/http/percent.h"
#include "service-kit/tls/certificate.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

using service::HttpHead;
using service::HttpReply;

constexpr service::HttpServerWords kLeaderWords{
    .name = "the manager that leads",
    .advice = "check that the setting advertise of that manager names an address that this manager reaches",
    .kind = "manager URL",
    .default_port = "7470",
};
constexpr std::string_view kSealPurpose = "tributary passed on 1";
constexpr std::uint64_t kAnswerMax = 256U << 20;
constexpr std::size_t kStatedBytesMax = 8U << 10;  // the whole head of a request has twice as many at most
constexpr std::int64_t kStatedSecondsMax = 30;     // also between two managers' clocks

bool same_text(std::string_view one, std::string_view other) {
  return one.size() == other.size() && same_bytes(std::as_bytes(std::span(one)), std::as_bytes(std::span(other)));
}

bool is_proved_by_certificate(const HttpHead& head) {
  return head.certificate != nullptr && head.authorization.empty();
}

/// Writes what an identity is found by. Neither subjects nor names contain line ends.
std::string text_of(const service::Certificate& certificate) {
  std::string lines = certificate.subject;
  for (const std::string& name : certificate.names) lines += '\n' + name;
  return to_base64(std::as_bytes(std::span(lines)));
}

std::vector<std::pair<std::string, std::string>> headers_for(const HttpHead& head, const std::string& stated) {
  std::vector<std::pair<std::string, std::string>> headers{{"Tributary-Passed-On", stated}};
  if (!head.accept.empty()) headers.emplace_back("Accept", head.accept);
  if (!head.last_event_id.empty()) headers.emplace_back("Last-Event-ID", head.last_event_id);
  return headers;
}

std::shared_ptr<const service::Certificate> certificate_in(const std::string& text) {
  const auto bytes = from_base64(text);
  if (!bytes) return nullptr;
  std::istringstream in(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  auto certificate = std::make_shared<service::Certificate>();
  std::getline(in, certificate->subject);
  for (std::string name; std::getline(in, name);) certificate->names.push_back(std::move(name));
  return certificate;
}

}  // namespace

std::string Forwarder::seal(std::string_view text) const {
  const Digest key = hmac_sha256(key_.now()->seed(), std::as_bytes(std::span(kSealPurpose)));
  return to_hex(hmac_sha256(key, std::as_bytes(std::span(text))));
}

std::string Forwarder::seal_of(const std::string& words, const HttpHead& head) const {
  return seal("head\n" + words + '\n' + head.method + ' ' + head.path + '?' + head.query + '\n' + head.authorization);
}

std::optional<std::string> Forwarder::header_for(const HttpHead& head, const std::string& body) const {
  std::string words = head.remote_address + ' ' + std::to_string(clock_.unix_seconds()) + ' ' + seal("body\n" + body) +
                      ' ' + (is_proved_by_certificate(head) ? text_of(*head.certificate) : "-");
  if (words.size() > kStatedBytesMax) return std::nullopt;
  return words + ' ' + seal_of(words, head);
}

std::optional<FirstSender> Forwarder::first_sender(const HttpHead& head) const {
  const std::size_t space = head.passed_on.rfind(' ');
  if (space == std::string::npos) return std::nullopt;
  const std::string words = head.passed_on.substr(0, space);
  if (!same_text(head.passed_on.substr(space + 1), seal_of(words, head))) return std::nullopt;
  std::istringstream in(words);
  FirstSender sender;
  std::int64_t seconds = 0;
  std::string certificate;
  if (!(in >> sender.address >> seconds >> sender.body_seal >> certificate)) return std::nullopt;
  if (certificate == "-") return sender;
  sender.certificate = certificate_in(certificate);
  const std::int64_t age = clock_.unix_seconds() - seconds;
  if (!sender.certificate || age < -kStatedSecondsMax || age > kStatedSecondsMax) return std::nullopt;
  return sender;
}

bool Forwarder::is_body_of(const FirstSender& sender, const std::string& body) const {
  return same_text(sender.body_seal, seal("body\n" + body));
}

Passing::Passing(PassingSettings settings, Forwarder forwarder)
    : settings_(std::move(settings)), forwarder_(forwarder) {}
Passing::~Passing() = default;

std::shared_ptr<service::HttpClient> Passing::take(bool read) {
  const std::lock_guard lock(mutex_);
  if (busy_.size() >= settings_.requests_max || (read && reads_ >= settings_.requests_max / 2)) return nullptr;
  if (read) ++reads_;
  auto client =
      idle_.empty() ? std::make_shared<service::HttpClient>(kLeaderWords, settings_.tls) : std::move(idle_.back());
  if (!idle_.empty()) idle_.pop_back();
  busy_.push_back(client);
  return client;
}

void Passing::give_back(const std::shared_ptr<service::HttpClient>& client, bool read, bool usable) {
  const std::lock_guard lock(mutex_);
  TRIBUTARY_ASSERT(!read || reads_ != 0, "a read ends, and {} requests are under way", busy_.size());
  if (read) --reads_;
  std::erase(busy_, client);
  if (usable) idle_.push_back(client);
}

std::optional<HttpReply> Passing::pass(const std::string& leader, const HttpHead& head, const std::string& body,
                                       bool read) {
  const auto url = service::parse_url(leader, kLeaderWords);
  if (!url) {
    spdlog::error("requests cannot be passed on: {}", url.error().message);
    return std::nullopt;
  }
  // In clear, other processes could send the proof of a certificate once more.
  if (is_proved_by_certificate(head) && !url->secure) return std::nullopt;
  const auto stated = forwarder_.header_for(head, body);
  const auto client = stated ? take(read) : nullptr;
  if (!client) return std::nullopt;
  const auto answer = client->run(
      *url, {.method = head.method,
             .target = service::percent_encode(head.path, "/:") + (head.query.empty() ? "" : "?" + head.query),
             .authorization = head.authorization,
             .body = body,
             .connect_limit = settings_.connect_limit,
             .request_limit = settings_.request_limit,
             .answer_bytes_max = kAnswerMax,
             .keep_alive = true,
             .headers = headers_for(head, *stated)});
  // A cancelled client returns no further answers.
  give_back(client, read, answer || answer.error().code != Errc::aborted);
  if (!answer) {
    complain(head, answer.error());
    return std::nullopt;
  }
  HttpReply reply{.status = answer->status, .content_type = answer->content_type, .body = answer->body, .headers = {}};
  if (answer->status == 503 || answer->status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

/// Logs only the first failure with each leader; the metrics count all failures.
void Passing::complain(const HttpHead& head, const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(complained_, true)) return;
  }
  spdlog::warn("{} {} was not passed on: {}", head.method, head.path, error.message);
}

void Passing::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  complained_ = false;
  for (const auto& client : busy_) client->cancel();
  idle_.clear();
}

}  // namespace tributary::manager
