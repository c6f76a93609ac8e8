#pragma once
// Metrics as a document for a collector of OpenTelemetry. A metric has its Prometheus name in OpenTelemetry's form:
// with dots, and with neither the unit nor `total` at its end. A Prometheus backend turns it into the Prometheus name.
#include <cstdint>
#include <string>

#include "service-kit/metric_page.h"

namespace tributary::cli {

/// Returns the metrics of the page, in OTLP's JSON encoding. `host` is the host that they describe; `now`: nanoseconds
/// since 1970-01-01 UTC.
[[nodiscard]] std::string otlp_metrics(const service::MetricPage& page, const std::string& host, std::int64_t now);

}  // namespace tributary::cli
