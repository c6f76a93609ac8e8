#include "client/cli/perf/report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tributary/protocol/reason.h"

namespace tributary::cli {
namespace {

constexpr std::size_t kPlacesShown = 64;

std::string path_text(const tributary_info& info) {
  if (info.path == TRIBUTARY_PATH_LOCAL) return fmt::format("shared memory: {}", info.reason);
  const std::string within =
      info.hosts == 0 ? "" : fmt::format("shared memory of each of {} hosts, between them ", info.hosts);
  if (info.path != TRIBUTARY_PATH_IN_NETWORK) return fmt::format("{}fallback: {}", within, info.reason);
  return fmt::format("{}in-network, {} {}, {} {}, window {} x {} B, epoch {}", within, info.levels,
                     info.levels == 1 ? "level" : "levels", info.lanes, info.lanes == 1 ? "lane" : "lanes", info.window,
                     info.segment_bytes, info.epoch);
}

/// Formats a number with three significant digits.
std::string number_text(double value) {
  if (value >= 1000) return fmt::format("{:.0f}", value);
  if (value >= 100) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string measurement_text(const std::optional<Measurement>& m) {
  if (!m) return fmt::format(" {:>8} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format(" {:>8} {:>7} {:>7} {:>6}", number_text(m->microseconds),
                     number_text(m->algorithm_gbytes_per_second), number_text(m->bus_gbytes_per_second),
                     m->wrong ? std::to_string(*m->wrong) : "N/A");
}

const char* validation_text(const BenchSettings& settings) {
  if (settings.call.exact) return "exact";
  return settings.check ? "1" : "0";
}

/// Returns the largest error of all rows, in units of the last place.
double largest_error(const PerfReport& report) {
  double largest = 0;
  for (const BenchRow& row : report.rows) {
    largest = std::max(largest, row.out_of_place.largest_error);
    if (row.in_place) largest = std::max(largest, row.in_place->largest_error);
  }
  return largest;
}

double average_bus_bandwidth(const PerfReport& report) {
  double sum = 0;
  int number = 0;
  const auto add = [&](const Measurement& m) {
    sum += m.bus_gbytes_per_second;
    ++number;
  };
  for (const BenchRow& row : report.rows) {
    add(row.out_of_place);
    if (row.in_place) add(*row.in_place);
  }
  return number == 0 ? 0 : sum / number;
}

struct BytesByPath {
  std::uint64_t in_network = 0, local = 0, fallback = 0;
};

BytesByPath bytes_by_path(const PerfReport& report) {
  BytesByPath bytes;
  for (const BenchRow& row : report.rows) {
    bytes.in_network += row.bytes_in_network;
    bytes.local += row.bytes_local;
    bytes.fallback += row.bytes_fallback;
  }
  return bytes;
}

const char* path_name(const tributary_info& info) {
  if (info.path == TRIBUTARY_PATH_LOCAL) return "local";
  if (info.hosts != 0) return info.path == TRIBUTARY_PATH_IN_NETWORK ? "host+tree" : "host+ring";
  return info.path == TRIBUTARY_PATH_IN_NETWORK ? "in-network" : "fallback";
}

nlohmann::json to_json(const std::optional<Measurement>& m) {
  if (!m) return nullptr;
  nlohmann::json result = {{"time_us", m->microseconds},
                           {"algbw_gbytes_per_second", m->algorithm_gbytes_per_second},
                           {"busbw_gbytes_per_second", m->bus_gbytes_per_second},
                           {"wrong", nullptr}};
  if (m->wrong) result["wrong"] = *m->wrong;
  return result;
}

nlohmann::json to_json(const tributary_info& info) {
  const CodedText reason = split_code(info.reason);
  return {{"path", path_name(info)},
          {"reason", reason.sentence},
          {"code", code_of(reason.reason)},
          {"hosts", info.hosts},
          {"epoch", info.epoch},
          {"lanes", info.lanes},
          {"levels", info.levels},
          {"window", info.window},
          {"segment_bytes", info.segment_bytes},
          {"transport", info.transport},
          {"lanes_shared", info.lanes_shared},
          {"links", info.links},
          {"links_shared", info.links_shared},
          {"direct", info.direct},
          {"attach_refusal", info.attach_refusal}};
}

nlohmann::json row_json(const BenchRow& row) {
  return {{"size_bytes", row.bytes},
          {"count", row.count},
          {"out_of_place", to_json(std::optional(row.out_of_place))},
          {"in_place", to_json(row.in_place)},
          {"bytes_in_network", row.bytes_in_network},
          {"bytes_local", row.bytes_local},
          {"bytes_fallback", row.bytes_fallback}};
}

}  // namespace

std::uint64_t wrong_elements(const PerfReport& report) {
  std::uint64_t sum = 0;
  for (const BenchRow& row : report.rows) {
    sum += row.out_of_place.wrong.value_or(0);
    if (row.in_place) sum += row.in_place->wrong.value_or(0);
  }
  return sum;
}

std::uint64_t bytes_in_network(const PerfReport& report) {
  return bytes_by_path(report).in_network;
}

std::string why_no_byte(const PerfReport& report) {
  const tributary_info& info = report.at_end;
  const PerfCollective collective = report.settings.call.collective;
  if (collective == PerfCollective::barrier) return "a barrier has no bytes";
  if (!can_use_trees(collective))
    return fmt::format("{} moves data straight between ranks, and no tree carries it", to_string(collective));
  if (info.path == TRIBUTARY_PATH_LOCAL) {
    return fmt::format("{}, and sum in its memory; TRIBUTARY_LOCAL=off sends the data of every rank to the aggregators",
                       split_code(info.reason).sentence);
  }
  if (info.path != TRIBUTARY_PATH_IN_NETWORK) return info.reason;
  return "trees were ready, and the tuning chose the ranks for every operation; tributary explain says why, and "
         "TRIBUTARY_TUNING=off takes the trees";
}

std::string memory_text(const PerfReport& report) {
  const auto& gpu = report.settings.gpu;
  return gpu ? fmt::format("# memory: GPU {} ({})\n", gpu->device(), gpu->name()) : "# memory: host\n";
}

std::string header_text(const PerfReport& report, std::uint64_t bytes_min, std::uint64_t bytes_max,
                        const std::string& step) {
  const BenchSettings& s = report.settings;
  std::string text = fmt::format(
      "# tributary {}.{}.{} {}, {} {} (launched by {})\n"
      "# minBytes {} maxBytes {} step {} warmup iters {} iters {} validation {}\n"
      "# path {}\n",
      TRIBUTARY_VERSION_MAJOR, TRIBUTARY_VERSION_MINOR, TRIBUTARY_VERSION_PATCH, to_string(s.call.collective),
      s.call.ranks, s.call.ranks == 1 ? "rank" : "ranks", report.launcher, bytes_min, bytes_max, step, s.warmup,
      s.iterations, validation_text(s), path_text(report.at_start));
  text += memory_text(report);
  for (std::size_t rank = 0; rank < std::min(report.places.size(), kPlacesShown); ++rank) {
    const RankPlace& place = report.places[rank];
    text += fmt::format("#   rank {:>5} pid {:>7} on {}{}\n", rank, place.pid, place.host,
                        place.gpu < 0 ? "" : fmt::format(", GPU {}", place.gpu));
  }
  if (report.places.size() > kPlacesShown)
    text += fmt::format("#   and {} more\n", report.places.size() - kPlacesShown);
  text += fmt::format("#\n# {:>12} {:>12} {:>11} {:>6} {:>5} {:^31} {:^31}\n", "", "", "", "", "", "out-of-place",
                      "in-place");
  text += fmt::format("# {:>12} {:>12} {:>11} {:>6} {:>5}", "size", "count", "type", "redop", "root");
  for (int form = 0; form < 2; ++form)
    text += fmt::format(" {:>8} {:>7} {:>7} {:>6}", "time", "algbw", "busbw", "#wrong");
  text += fmt::format("\n# {:>12} {:>12} {:>11} {:>6} {:>5}", "(B)", "(elements)", "", "", "");
  for (int form = 0; form < 2; ++form) text += fmt::format(" {:>8} {:>7} {:>7} {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  return text + "\n";
}

std::string row_text(const PerfReport& report, const BenchRow& row) {
  const BenchSettings& s = report.settings;
  return fmt::format("  {:>12} {:>12} {:>11} {:>6} {:>5}{}{}\n", row.bytes, row.count, to_string(s.call.dtype),
                     reduces(s.call.collective) ? to_string(s.call.op) : "none",
                     has_root(s.call.collective) ? std::to_string(s.call.root) : "-1",
                     measurement_text(row.out_of_place), measurement_text(row.in_place));
}

std::string footer_text(const PerfReport& report) {
  const std::uint64_t wrong = wrong_elements(report);
  const auto [in_network, local, fallback] = bytes_by_path(report);
  const std::uint64_t all = in_network + local + fallback;
  const double share = all == 0 ? 0 : 100.0 * static_cast<double>(in_network) / static_cast<double>(all);
  std::string text;
  text += report.settings.check ? fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED")
                                : std::string("# Out of bounds values : not checked\n");
  if (report.settings.call.exact)
    text += fmt::format("# Largest error        : {:.0f} units of the last place\n", largest_error(report));
  text += fmt::format("# Avg bus bandwidth    : {:.4g}\n", average_bus_bandwidth(report));
  text += fmt::format("# Bytes by path        : in-network {} ({:.1f} %), fallback {}{}\n", in_network, share, fallback,
                      local == 0 ? "" : fmt::format(", shared memory {}", local));
  if (in_network == 0 && all != 0 && report.at_end.path != TRIBUTARY_PATH_LOCAL)
    text += fmt::format("# Not in the network   : {}\n", why_no_byte(report));
  if (local != 0 || report.at_end.hosts != 0) {
    const std::string refusal = report.at_end.attach_refusal;
    text += fmt::format("# Shared memory        : {} {} without copies{}\n", report.at_end.direct,
                        report.at_end.hosts == 0 ? "operations" : "pieces",
                        refusal.empty() ? "" : "; no cross-memory attach: " + refusal);
  }
  if (report.at_end.failovers != 0) {
    text += fmt::format("# Failovers            : {}, returns {}, longest pause {:.1f} ms; path now {}\n",
                        report.at_end.failovers, report.at_end.returns,
                        static_cast<double>(report.at_end.longest_pause_us) / 1000, path_text(report.at_end));
  }
  return text;
}

nlohmann::json to_json(const PerfReport& report) {
  const BenchSettings& s = report.settings;
  nlohmann::json places = nlohmann::json::array();
  for (const RankPlace& place : report.places) {
    places.push_back({{"host", place.host}, {"pid", place.pid}});
    places.back()["gpu"] = place.gpu < 0 ? nlohmann::json(nullptr) : nlohmann::json(place.gpu);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(row));
  const auto [in_network, local, fallback] = bytes_by_path(report);
  nlohmann::json result = {{"collective", to_string(s.call.collective)},
                           {"ranks", s.call.ranks},
                           {"dtype", to_string(s.call.dtype)},
                           {"iterations", s.iterations},
                           {"warmup", s.warmup},
                           {"checked", s.check},
                           {"memory", s.gpu ? "cuda" : "host"},
                           {"launcher", report.launcher},
                           {"places", std::move(places)},
                           {"at_start", to_json(report.at_start)},
                           {"at_end", to_json(report.at_end)},
                           {"rows", std::move(rows)},
                           {"wrong", wrong_elements(report)},
                           {"average_busbw_gbytes_per_second", average_bus_bandwidth(report)},
                           {"bytes_in_network", in_network},
                           {"bytes_fallback", fallback},
                           {"bytes_local", local},
                           {"failovers", report.at_end.failovers},
                           {"longest_pause_us", report.at_end.longest_pause_us}};
  if (s.call.exact) result["largest_error_units"] = largest_error(report);
  result["gpu_name"] = s.gpu ? nlohmann::json(s.gpu->name()) : nlohmann::json(nullptr);
  result["op"] = reduces(s.call.collective) ? nlohmann::json(to_string(s.call.op)) : nlohmann::json(nullptr);
  result["root"] = has_root(s.call.collective) ? nlohmann::json(s.call.root) : nlohmann::json(nullptr);
  return result;
}

}  // namespace tributary::cli
