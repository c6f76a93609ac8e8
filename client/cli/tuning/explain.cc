#include "client/cli/tuning/explain.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/tuning/explain_local.h"
#include "client/tuning/table.h"
#include "tributary/protocol/reason.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

struct Answer {
  // The number of hosts, if the ranks of each host reduce among themselves first; the call then counts one rank per
  // host.
  std::uint32_t hosts = 0;
  tuning::Call call;
  tuning::Table table;  // the estimates use the table's figures
  tuning::Step step;
  Reason code = Reason::none;
  std::string why;
  std::vector<tuning::Estimate> estimates;
};

bool is_picked(const Answer& answer, const tuning::Estimate& e) {
  return e.path == answer.step.path && (e.path == tuning::Path::tree || e.algorithm == answer.step.algorithm);
}

std::string way_text(tuning::Path path, schedule::Algorithm algorithm) {
  if (path == tuning::Path::tree) return "through the tree";
  return fmt::format("between the ranks, {}", schedule::name(algorithm));
}

/// Returns the number of hosts, if there are several and their ranks share memory; else 0.
std::uint32_t hosts_of(const ExplainOptions& options) {
  if (!may_share_memory() || options.ranks_per_host < 2 || options.ranks <= options.ranks_per_host) return 0;
  if (!in_network_capable(options.collective)) return 0;
  return (options.ranks + options.ranks_per_host - 1) / options.ranks_per_host;
}

std::string limit_text(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "any size" : "up to " + std::to_string(bytes) + " bytes";
}

/// Returns whether the call's sums are exact, by the option or by TRIBUTARY_NUMERICS.
bool sums_exactly(const ExplainOptions& options) {
  if (!is_float(options.dtype)) return false;
  if (options.numerics) return *options.numerics == Numerics::exact;
  const char* const variable = std::getenv("TRIBUTARY_NUMERICS");
  return variable != nullptr && numerics_from_string(variable) == Numerics::exact;
}

/// Replaces figures by the figures from the command line.
void apply(const ExplainOptions& options, tuning::Figures& figures) {
  if (options.link_bits) figures.link_gbits = static_cast<double>(*options.link_bits) / 1e9;
  if (options.cores != 0) figures.cores = options.cores;
  if (options.ranks_per_host != 0) figures.ranks_per_host = options.ranks_per_host;
}

std::string model_reason(const Answer& answer) {
  std::string text = fmt::format("the cost model expects {:.4g} us", answer.estimates[0].time_us());
  if (answer.estimates.size() > 1) {
    const tuning::Estimate& next = answer.estimates[1];
    text += fmt::format(", and {:.4g} us {}", next.time_us(), way_text(next.path, next.algorithm));
  }
  return text;
}

Result<Answer> answer_of(const ExplainOptions& options) {
  std::string tuning = options.tuning;
  if (tuning.empty()) {
    const char* variable = std::getenv("TRIBUTARY_TUNING");
    tuning = variable == nullptr || *variable == '\0' ? "auto" : variable;
  }
  Answer answer;
  const std::uint64_t whole = options.bytes / size_of(options.dtype) * size_of(options.dtype);
  answer.hosts = hosts_of(options);
  answer.call = {.collective = options.collective,
                 .ranks = answer.hosts != 0 ? answer.hosts : options.ranks,
                 .bytes = options.collective == Collective::barrier ? 0 : whole};
  const bool from_file = tuning != "auto" && tuning != "model" && tuning != "off";
  if (from_file) {
    auto table = tuning::read_table(tuning);
    if (!table) return std::unexpected(table.error());
    answer.table = std::move(*table);
  } else {
    answer.table.figures.cores = tuning::cores_here();
  }
  apply(options, answer.table.figures);
  if (answer.hosts != 0) answer.table.figures.ranks_per_host = 1;
  answer.table.figures.exact = sums_exactly(options);
  answer.estimates = tuning::estimates(answer.table.figures, answer.call);
  const tuning::GroupShape shape{.ranks = answer.call.ranks, .exact = answer.table.figures.exact};
  answer.step = tuning::policy_of(answer.table, shape).at(options.collective, answer.call.bytes);
  const auto has = tuning::algorithms_of(answer.table.figures, options.collective);
  if (std::ranges::find(has, answer.step.algorithm) == has.end()) answer.step.algorithm = has.front();
  const tuning::Rule* rule = tuning::rule_for(answer.table, answer.call);
  if (tuning == "off" && in_network_capable(options.collective)) {
    answer.step.path = tuning::Path::tree;
    answer.code = Reason::tuning_off;
    answer.why = "tuning is off, so a tree is used whenever there is one";
  } else if (rule != nullptr) {
    answer.code = Reason::tuning_rule;
    answer.why =
        fmt::format("rule {} of {}: {} of {} to {} ranks, {}", rule - answer.table.rules.data(), tuning,
                    to_string(rule->collective), rule->ranks_min, rule->ranks_max, limit_text(rule->step.bytes_max));
  } else {
    answer.code = answer.step.path == tuning::Path::ranks ? Reason::ranks_are_faster : Reason::tree_is_faster;
    answer.why = model_reason(answer);
    if (from_file) answer.why = fmt::format("no rule of {} applies; by its figures ", tuning) + answer.why;
  }
  return answer;
}

std::string us_text(double us) {
  return fmt::format("{:.1f}", us);
}

void show_table(const Answer& answer, const ExplainOptions& options) {
  const tuning::Figures& f = answer.table.figures;
  const std::string within =
      answer.hosts == 0
          ? ""
          : fmt::format("in shared memory on each of {} hosts, and with one rank of each host ", answer.hosts);
  std::printf("%s of %llu bytes (%s) over %u ranks: %s%s\n", std::string(to_string(answer.call.collective)).c_str(),
              static_cast<unsigned long long>(answer.call.bytes), std::string(to_string(options.dtype)).c_str(),
              options.ranks, within.c_str(), way_text(answer.step.path, answer.step.algorithm).c_str());
  if (row_of(answer.call.collective).reduces && f.exact)
    std::puts("numerics: exact; the sum of all ranks' values is rounded once");
  std::printf("why: %s\n", coded(answer.code, answer.why).c_str());
  if (answer.step.path == tuning::Path::tree)
    std::printf("without a tree: between the ranks, %s\n", schedule::name(answer.step.algorithm));
  std::printf(
      "figures: message %g us, hop %g us (%g us of it in the aggregator), link %s, core %g GB/s, %u cores for %u "
      "rank(s) a host, segment %u bytes\n\n",
      f.message_us, f.hop_us, f.aggregator_us,
      f.link_gbits > 0 ? fmt::format("{:g} Gbit/s", f.link_gbits).c_str() : "none", f.core_gbytes, f.cores,
      std::min(f.ranks_per_host, answer.call.ranks), f.segment_bytes);
  Table table({"PICKED", "PATH", "ALGORITHM", "LATENCY (us)", "TRANSFER (us)", "PROCESSORS (us)", "ESTIMATE (us)"});
  for (const tuning::Estimate& e : answer.estimates) {
    table.add({is_picked(answer, e) ? "*" : "", tuning::name(e.path),
               e.path == tuning::Path::tree ? "-" : schedule::name(e.algorithm), us_text(e.latency_us),
               us_text(e.transfer_us), us_text(e.processors_us), us_text(e.time_us())});
  }
  std::fputs(table.text().c_str(), stdout);
}

json named(tuning::Path path, schedule::Algorithm algorithm) {
  json way = {{"path", tuning::name(path)}, {"algorithm", nullptr}};
  if (path != tuning::Path::tree) way["algorithm"] = schedule::name(algorithm);
  return way;
}

void show_json(const Answer& answer, const ExplainOptions& options) {
  json all = {
      {"collective", to_string(answer.call.collective)},
      {"bytes", answer.call.bytes},
      {"ranks", options.ranks},
      {"hosts", answer.hosts},
      {"dtype", to_string(options.dtype)},
      {"numerics", to_string(answer.table.figures.exact ? Numerics::exact : Numerics::fast)},
      {"picked", named(answer.step.path, answer.step.algorithm)},
      {"without_a_tree", schedule::name(answer.step.algorithm)},
      {"why", answer.why},
      {"code", code_of(answer.code)},
      {"figures",
       json::parse(tuning::to_text({.figures = answer.table.figures, .rules = {}, .measured = {}})).at("figures")},
      {"estimates", json::array()}};
  for (const tuning::Estimate& e : answer.estimates) {
    json one = named(e.path, e.algorithm);
    one["latency_us"] = e.latency_us;
    one["transfer_us"] = e.transfer_us;
    one["processors_us"] = e.processors_us;
    one["time_us"] = e.time_us();
    all["estimates"].push_back(std::move(one));
  }
  std::puts(all.dump(1, ' ', false, json::error_handler_t::replace).c_str());
}

}  // namespace

int explain(const ExplainOptions& options) {
  if (all_on_one_host(options)) {
    explain_local(options);
    return kExitGood;
  }
  const auto answer = answer_of(options);
  if (!answer) {
    std::fprintf(stderr, "tributary explain: %s\n", answer.error().message.c_str());
    return exit_code_of(answer.error().code);
  }
  options.json ? show_json(*answer, options) : show_table(*answer, options);
  return kExitGood;
}

}  // namespace tributary::cli
