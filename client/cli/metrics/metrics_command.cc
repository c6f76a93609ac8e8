#include "client/cli/metrics/metrics_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "client/cli/dump/ports.h"
#include "client/cli/meter/own_host.h"
#include "client/cli/metrics/otlp_metrics.h"
#include "client/cli/metrics/rank_metrics.h"
#include "client/cli/otlp/sender.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "service-kit/whole_file.h"

namespace tributary::cli {
namespace {

void tell(const std::string& sentence) {
  std::fprintf(stderr, "tributary metrics: %s\n", printable(sentence).c_str());
}

/// Returns the figures of the ranks that answer. Names those that do not.
Result<std::vector<RankFigures>> gather(const MetricsOptions& options) {
  const auto ports = ports_in(status_folder(options.folder));
  if (!ports) return fail(Errc::io, ports.error().message + "; --dir names the folder of the ranks' status ports");
  std::vector<RankFigures> ranks;
  for (const PortAnswer& answer : ask_ports(*ports, "metrics json\n")) {
    auto read = answer.trouble.empty() ? read_figures(answer.text) : fail(Errc::io, answer.trouble);
    if (!read) {
      tell("no metrics from " + answer.port + ": " + read.error().message);
    } else if (options.job.empty() || read->job == options.job) {
      ranks.push_back(std::move(*read));
    }
  }
  const auto key = [](const RankFigures& rank) { return std::tie(rank.job, rank.rank); };
  std::ranges::stable_sort(ranks, {}, key);
  const auto same = std::ranges::unique(ranks, {}, key);  // Prometheus takes no series twice
  if (!same.empty())
    tell(std::to_string(same.size()) + " processes have the job and rank of another one, and are left out");
  ranks.erase(same.begin(), same.end());
  return ranks;
}

std::int64_t unix_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// Writes the metrics, and sends them to the collector if there is one.
Status write_once(const MetricsOptions& options, std::optional<OtlpSender>& collector) {
  const auto ranks = gather(options);
  if (!ranks) return std::unexpected(ranks.error());
  const service::MetricPage page = rank_metrics(*ranks);
  if (collector) {
    const Status sent = collector->send("metrics", otlp_metrics(page, meter::own_host(), unix_ns()));
    if (!sent || options.into.empty()) return sent;
  }
  const std::string text = page.text();
  if (!options.into.empty()) {
    const Status written = service::write_whole_file(options.into, text, 0644);  // node exporter is another user
    return written ? written : fail(Errc::io, options.into + " was not written: " + written.error().message);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace

int write_metrics(const MetricsOptions& options) {
  std::optional<OtlpSender> collector;
  if (!options.otlp.empty()) {
    auto opened = OtlpSender::open(options.otlp);
    if (!opened) {
      tell(opened.error().message);
      return exit_code_of(opened.error().code);
    }
    collector.emplace(std::move(*opened));
  }
  while (true) {
    const Status written = write_once(options, collector);
    if (!written) tell(written.error().message);
    if (options.every_seconds == 0) return written ? kExitGood : kExitFailed;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.every_seconds));
  }
}

}  // namespace tributary::cli
