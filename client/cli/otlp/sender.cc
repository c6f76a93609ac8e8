#include "client/cli/otlp/sender.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cli/manager/access.h"
#include "tributary/manager_client/manager_client.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr service::HttpServerWords kCollectorWords{
    .name = "the collector",
    .advice = "check that it runs, and that it takes OTLP over HTTP there",
    .kind = "collector URL",
    .default_port = kOtlpPort};
constexpr std::chrono::milliseconds kConnectLimit{2000}, kRequestLimit{10'000};
constexpr std::uint64_t kAnswerBytesMax = 1U << 16;
constexpr std::size_t kReasonBytesMax = 200;

/// Returns what the collector has rejected, with its reason; empty: nothing.
std::string rejection_in(const std::string& body) {
  const json answer = json::parse(body, nullptr, false);
  if (!answer.is_object() || !answer.contains("partialSuccess") || !answer["partialSuccess"].is_object()) return {};
  const json& part = answer["partialSuccess"];
  const std::string reason = part.contains("errorMessage") && part["errorMessage"].is_string()
                                 ? ": " + part["errorMessage"].get<std::string>()
                                 : std::string();
  for (const auto& [name, what] :
       {std::pair("rejectedDataPoints", " data points"), std::pair("rejectedSpans", " spans")}) {
    if (!part.contains(name)) continue;
    // The encoding writes numbers of 64 bits as text.
    const std::string count = part[name].is_string() ? part[name].get<std::string>() : part[name].dump();
    if (count != "0") return count + what + reason;
  }
  return {};
}

}  // namespace

Result<OtlpSender> OtlpSender::open(const std::string& url) {
  auto parsed = service::parse_url(url, kCollectorWords);
  if (!parsed) return fail(Errc::bad_argument, parsed.error().message);
  auto tls = manager_client::tls_for(url, tls_files());
  if (!tls) return std::unexpected(tls.error());
  return OtlpSender(std::move(*parsed), std::make_unique<service::HttpClient>(kCollectorWords, std::move(*tls)));
}

Status OtlpSender::send(std::string_view signal, const std::string& document) {
  const auto answer = client_->run(url_, {.method = "POST",
                                          .target = "/v1/" + std::string(signal),
                                          .authorization = {},
                                          .body = document,
                                          .connect_limit = kConnectLimit,
                                          .request_limit = kRequestLimit,
                                          .answer_bytes_max = kAnswerBytesMax,
                                          .keep_alive = true});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) {
    return fail(Errc::io, "the collector at " + url_.text + " answered POST /v1/" + std::string(signal) + " with " +
                              std::to_string(answer->status) + ": " + answer->body.substr(0, kReasonBytesMax));
  }
  const std::string rejected = rejection_in(answer->body);
  if (rejected.empty()) return {};
  return fail(Errc::io, "the collector at " + url_.text + " rejected " + rejected.substr(0, kReasonBytesMax));
}

}  // namespace tributary::cli
