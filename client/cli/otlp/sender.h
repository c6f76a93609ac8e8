#pragma once
// Sends to a collector of OpenTelemetry: OTLP over HTTP, in its JSON encoding
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp).
#include <memory>
#include <string>
#include <string_view>

#include "service-kit/http/http_client.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The default port of collectors for OTLP over HTTP.
inline constexpr std::string_view kOtlpPort = "4318";

/// One thread at a time may use it.
class OtlpSender {
 public:
  /// Takes the collector's URL, "http://HOST[:PORT][/PREFIX]", or the same with https. Errc::bad_argument names what is
  /// wrong with the URL; Errc::bad_config names a file of TRIBUTARY_TLS_... that cannot be read.
  [[nodiscard]] static Result<OtlpSender> open(const std::string& url);
  /// Posts one document to `signal`, "metrics" or "traces". Errc::unreachable: no collector answers. Errc::io: it
  /// answers, and takes the document not at all or only in part; the sentence has its reason.
  [[nodiscard]] Status send(std::string_view signal, const std::string& document);

 private:
  OtlpSender(service::HttpUrl url, std::unique_ptr<service::HttpClient> client)
      : url_(std::move(url)), client_(std::move(client)) {}

  service::HttpUrl url_;
  std::unique_ptr<service::HttpClient> client_;
};

}  // namespace tributary::cli
