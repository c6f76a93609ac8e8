#include "client/cli/budget/budget_report.h"

#include <spdlog/fmt/fmt.h>

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/counted.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

std::string quantity_text(double value, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  for (; value >= 1000 && unit + 1 != units.end(); ++unit) value /= 1000;
  return fmt::format("{:.4g} {}", value, *unit);
}

std::string decimal_bytes_text(double bytes) {
  return quantity_text(bytes, {"B", "kB", "MB", "GB", "TB", "PB", "EB"});
}

std::string link_text(double bits_per_second) {
  return quantity_text(bits_per_second, {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Pbit/s", "Ebit/s"});
}

std::string seconds_text(double seconds) {
  return seconds >= 1 ? fmt::format("{:.4g} s", seconds) : quantity_text(seconds * 1e9, {"ns", "us", "ms"});
}

std::string number_of_aggregators(std::uint64_t number) {
  return counted(number, "aggregator", "aggregators");
}

std::string head_text(const BudgetInput& input, const Budget& budget) {
  return fmt::format("{} parameters, {} bytes each ({}): {} a step\n{} ranks on links of {}\n", input.parameters,
                     size_of(input.dtype), to_string(input.dtype), decimal_bytes_text(budget.bytes), input.ranks,
                     link_text(static_cast<double>(input.rank_rate))) +
         fmt::format("{} on links of {}: c = {:.4g} of what all ranks send; {} would carry all of it\n",
                     number_of_aggregators(budget.aggregators), link_text(static_cast<double>(input.aggregator_rate)),
                     budget.coverage, budget.aggregators_enough);
}

std::string ways_text(const Budget& budget) {
  std::vector<std::string> names{"WAY", "EACH LINK CARRIES", "TIME", "TIMES AS FAST AS THE RING"};
  if (budget.verdict) names.insert(names.end(), {"STEP", "MET"});
  Table table(std::move(names));
  const auto add = [&](const std::string& name, const WayCost& way, const StepTime& step) {
    std::vector<std::string> row{name, decimal_bytes_text(way.bytes), seconds_text(way.seconds),
                                 fmt::format("{:.3f}", budget.ring.seconds / way.seconds)};
    if (budget.verdict) {
      row.insert(row.end(), {seconds_text(step.seconds), step.met ? "yes" : "no"});
    }
    table.add(std::move(row));
  };
  const StepForecast steps = budget.verdict.value_or(StepForecast{});
  add("ring", budget.ring, steps.ring);
  add("tree", budget.tree, steps.tree);
  add(fmt::format("split, {:.1f} % through trees", 100 * budget.tree_share), budget.split, steps.split);
  return table.text();
}

std::string purchases_text(const BudgetInput& input, const Budget& budget) {
  Table table({"AGGREGATORS", "C", "THROUGH TREES", "TIME", "TIMES AS FAST AS THE RING", "EACH MORE SAVES"});
  for (const Purchase& p : budget.purchases) {
    table.add({std::to_string(p.aggregators) + (p.aggregators == input.aggregators ? " *" : ""),
               fmt::format("{:.4g}", p.coverage), fmt::format("{:.1f} %", 100 * p.tree_share), seconds_text(p.seconds),
               fmt::format("{:.3f}", p.gain), seconds_text(p.seconds_saved_each)});
  }
  return table.text();
}

std::string verdict_text(const BudgetInput& input, const StepForecast& verdict) {
  const double wanted = std::chrono::duration<double>(*input.step).count();
  if (!verdict.ring_rate_needed) {
    return fmt::format("a step of {} leaves no time for communication: computing takes {}\n", seconds_text(wanted),
                       seconds_text(std::chrono::duration<double>(input.computing).count()));
  }
  std::string text = fmt::format("a step of {} leaves {} for communication", seconds_text(wanted),
                                 seconds_text(verdict.communication_seconds_max));
  if (input.overlap > 0) text += fmt::format(", which runs behind {:.4g} of the computing", input.overlap);
  if (!verdict.aggregators_needed) {
    text += "\nnot met by any number of aggregators on these links of the ranks\n";
  } else if (*verdict.aggregators_needed == 0) {
    text += "\nmet by the ring without aggregators\n";
  } else {
    text += fmt::format("\nmet by split with {} on links of {}\n", number_of_aggregators(*verdict.aggregators_needed),
                        link_text(static_cast<double>(input.aggregator_rate)));
  }
  return text + fmt::format("met by ranks' links of {} (ring) or {} (tree with enough aggregators)\n",
                            link_text(*verdict.ring_rate_needed), link_text(*verdict.tree_rate_needed));
}

json way_json(const WayCost& way) {
  return {{"bytes", way.bytes}, {"seconds", way.seconds}};
}

json verdict_json(const BudgetInput& input, const Budget& budget) {
  const StepForecast& v = *budget.verdict;
  const auto step = [](const StepTime& time) { return json{{"step_seconds", time.seconds}, {"met", time.met}}; };
  json needed = {{"aggregators", nullptr}, {"ring_bits_per_second", nullptr}, {"tree_bits_per_second", nullptr}};
  if (v.aggregators_needed) needed["aggregators"] = *v.aggregators_needed;
  if (v.ring_rate_needed) needed["ring_bits_per_second"] = *v.ring_rate_needed;
  if (v.tree_rate_needed) needed["tree_bits_per_second"] = *v.tree_rate_needed;
  return {{"step_seconds_wanted", std::chrono::duration<double>(*input.step).count()},
          {"communication_seconds_max", v.communication_seconds_max},
          {"ring", step(v.ring)},
          {"tree", step(v.tree)},
          {"split", step(v.split)},
          {"needed", std::move(needed)}};
}

}  // namespace

std::string budget_text(const BudgetInput& input, const Budget& budget) {
  std::string text = head_text(input, budget) + "\n" + ways_text(budget) + "\n" + purchases_text(input, budget);
  if (budget.verdict) text += "\n" + verdict_text(input, *budget.verdict);
  return text;
}

std::string budget_json(const BudgetInput& input, const Budget& budget) {
  json all = {{"parameters", input.parameters},
              {"dtype", to_string(input.dtype)},
              {"bytes", budget.bytes},
              {"ranks", input.ranks},
              {"link_bits_per_second", input.rank_rate},
              {"aggregators", budget.aggregators},
              {"aggregators_enough", budget.aggregators_enough},
              {"aggregator_bits_per_second", input.aggregator_rate},
              {"coverage", budget.coverage},
              {"tree_share", budget.tree_share},
              {"ring", way_json(budget.ring)},
              {"tree", way_json(budget.tree)},
              {"split", way_json(budget.split)},
              {"purchases", json::array()},
              {"verdict", nullptr}};
  for (const Purchase& p : budget.purchases) {
    all["purchases"].push_back({{"aggregators", p.aggregators},
                                {"coverage", p.coverage},
                                {"tree_share", p.tree_share},
                                {"seconds", p.seconds},
                                {"gain", p.gain},
                                {"seconds_saved_each", p.seconds_saved_each}});
  }
  if (budget.verdict) all["verdict"] = verdict_json(input, budget);
  return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tributary::cli
