#include "client/cli/trace/otlp_spans.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "client/cli/otlp/document_parts.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr int kInternalSpan = 1;  // SPAN_KIND_INTERNAL
constexpr int kStatusError = 2;   // STATUS_CODE_ERROR
constexpr std::size_t kTraceIdBytes = 16, kSpanIdBytes = 8;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Returns an id of this many bytes, which two different members of a group never share in practice.
std::string id_of(const std::string& group, const std::string& member, std::size_t bytes) {
  const Digest digest = hmac_sha256(bytes_of(group), bytes_of(member));
  return to_hex(std::span(digest).first(bytes));
}

/// Makes the documents, and sends each when it is full.
class SpanWriter {
 public:
  SpanWriter(const TraceParts& parts, const std::function<Status(const std::string&)>& send)
      : parts_(parts),
        send_(send),
        calendar_(parts.ranks.empty() ? TraceClock{} : parts.clocks[parts.ranks.front().clock]) {}

  Status add(const TracedRank& rank) {
    for (const TracedOperation& o : rank.operations) {
      if (!o.queued && !o.started) continue;
      spans_.push_back(span_of(rank, o));
      ++count_;
      if (count_ < kSpansMax) continue;
      close(rank);
      if (auto sent = flush(); !sent) return sent;
    }
    close(rank);
    return {};
  }
  Status flush() {
    if (std::exchange(count_, 0) == 0) return {};
    return send_(otlp_text({{"resourceSpans", std::exchange(resources_, json::array())}}));
  }

 private:
  /// Returns nanoseconds since 1970 as the encoding wants them.
  [[nodiscard]] std::string time_of(std::int64_t steady) const {
    return std::to_string(steady - calendar_.steady + calendar_.calendar);
  }

  [[nodiscard]] json span_of(const TracedRank& rank, const TracedOperation& o) const {
    const std::int64_t begin = o.queued ? *o.queued : *o.started;
    const std::int64_t end = std::max(o.ended.value_or(parts_.clocks[rank.clock].steady), begin);
    const std::string number_text = std::to_string(o.number);
    json span{{"traceId", id_of(rank.group, number_text, kTraceIdBytes)},
              {"spanId", id_of(rank.group, number_text + ' ' + std::to_string(rank.rank), kSpanIdBytes)},
              {"name", o.call},
              {"kind", kInternalSpan},
              {"startTimeUnixNano", time_of(begin)},
              {"endTimeUnixNano", time_of(end)},
              {"attributes",
               {otlp_attribute("tributary.operation", o.number), otlp_attribute("tributary.bytes", o.bytes),
                otlp_attribute("tributary.path", o.path), otlp_attribute("tributary.outcome", o.outcome)}}};
    if (o.started && o.queued)
      span["attributes"].push_back(otlp_attribute(
          "tributary.queued_ns", static_cast<std::uint64_t>(std::max<std::int64_t>(*o.started - *o.queued, 0))));
    if (!o.ended) {
      span["attributes"].push_back({{"key", "tributary.open"}, {"value", {{"boolValue", true}}}});
    } else if (o.outcome != "success") {
      span["status"] = {{"code", kStatusError}, {"message", o.outcome}};
    }
    return span;
  }

  /// Puts the spans that wait under their rank.
  void close(const TracedRank& rank) {
    if (spans_.empty()) return;
    json resource{{"attributes",
                   {otlp_attribute("service.name", "tributary"), otlp_attribute("host.name", rank.host),
                    otlp_attribute("process.pid", static_cast<std::uint64_t>(rank.pid)),
                    otlp_attribute("tributary.job", rank.job), otlp_attribute("tributary.group", rank.group),
                    otlp_attribute("tributary.rank", rank.rank), otlp_attribute("tributary.ranks", rank.ranks)}}};
    resources_.push_back(
        {{"resource", std::move(resource)},
         {"scopeSpans", json::array({{{"scope", otlp_scope()}, {"spans", std::exchange(spans_, json::array())}}})}});
  }

  const TraceParts& parts_;
  const std::function<Status(const std::string&)>& send_;
  const TraceClock calendar_;  // the clock on which all times are
  json resources_ = json::array(), spans_ = json::array();
  std::size_t count_ = 0;  // spans since the last document
};

}  // namespace

Status otlp_spans(const TraceParts& parts, const std::function<Status(const std::string&)>& send) {
  SpanWriter writer(parts, send);
  for (const TracedRank& rank : parts.ranks) {
    if (auto added = writer.add(rank); !added) return added;
  }
  return writer.flush();
}

}  // namespace tributary::cli
