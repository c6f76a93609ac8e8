#include "client/tuning/table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "service-kit/mistake.h"

namespace tributary::tuning {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormat = "tributary-tuning-1";
constexpr std::size_t kFileBytesMax = 16U << 20;
constexpr std::size_t kRulesMax = 65536;

/// One number of Figures: its key, its bounds, and whether it is whole.
struct FigureKey {
  const char* key;
  double least, most;
  bool whole;
  double (*get)(const Figures&);
  void (*set)(Figures&, double);
};
template <auto kMember>
constexpr FigureKey figure_key(const char* key, double least, double most, bool whole = false) {
  return {
      key,
      least,
      most,
      whole,
      [](const Figures& f) { return static_cast<double>(f.*kMember); },
      [](Figures& f, double value) { f.*kMember = static_cast<std::remove_reference_t<decltype(f.*kMember)>>(value); }};
}
constexpr FigureKey kFigures[] = {
    figure_key<&Figures::message_us>("message_us", 0.001, 1e6),
    figure_key<&Figures::hop_us>("hop_us", 0.001, 1e6),
    figure_key<&Figures::aggregator_us>("aggregator_us", 0, 1e6),
    figure_key<&Figures::link_gbits>("link_gbits", 0, 1e5),
    figure_key<&Figures::core_gbytes>("core_gbytes", 0.001, 1e4),
    figure_key<&Figures::cores>("cores", 1, 65536, true),
    figure_key<&Figures::ranks_per_host>("ranks_per_host", 1, 65536, true),
    figure_key<&Figures::segment_bytes>("segment_bytes", 1, 1U << 30, true),
    figure_key<&Figures::staging_gbytes>("staging_gbytes", 0, 1e4),
};

std::string number_text(double value) {
  return json(value).dump();
}

/// A place in the file, for messages: "FILE: rules[3].path".
struct Place {
  std::string text;
  [[nodiscard]] Place operator/(const std::string& key) const {
    return {text + (text.ends_with(": ") ? "" : ".") + key};
  }
  [[nodiscard]] Place operator[](std::size_t index) const { return {text + "[" + std::to_string(index) + "]"}; }
  [[nodiscard]] std::unexpected<Error> refuse(const json& value, const std::string& allowed) const {
    std::string shown =
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
    return service::refuse({.key = text, .value = std::move(shown), .why = "it is not allowed", .allowed = allowed});
  }
  [[nodiscard]] std::unexpected<Error> missing(const std::string& allowed) const {
    return service::refuse({.key = text, .why = "the key is missing", .allowed = allowed});
  }
};

Status only_keys(const json& object, const Place& place, std::span<const std::string_view> names) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(names, std::string_view(key)) != names.end()) continue;
    service::Mistake mistake = service::unknown_key({}, key, "key", names);
    mistake.key = (place / mistake.key).text;
    return service::refuse(mistake);
  }
  return {};
}

Status read_figures(const json& object, const Place& place, Figures& figures) {
  if (!object.is_object()) return place.refuse(object, "an object");
  std::vector<std::string_view> keys;
  for (const FigureKey& figure : kFigures) keys.emplace_back(figure.key);
  if (auto ok = only_keys(object, place, keys); !ok) return ok;
  for (const FigureKey& figure : kFigures) {
    const auto found = object.find(figure.key);
    if (found == object.end()) continue;
    const double value = found->is_number() ? found->get<double>() : -1;
    if (!(value >= figure.least) || value > figure.most || (figure.whole && !found->is_number_integer())) {
      return (place / figure.key)
          .refuse(*found, std::string(figure.whole ? "a whole number" : "a number") + " from " +
                              number_text(figure.least) + " to " + number_text(figure.most));
    }
    figure.set(figures, value);
  }
  return {};
}

template <class Value, class Find>
Result<Value> read_name(const json& object, const char* key, const Place& place, const std::string& allowed,
                        Find find) {
  const auto found = object.find(key);
  if (found == object.end()) return (place / key).missing(allowed);
  const auto value = found->is_string() ? find(found->template get<std::string>()) : std::nullopt;
  if (!value) return (place / key).refuse(*found, allowed);
  return *value;
}

std::optional<Collective> collective_from_string(std::string_view text) noexcept {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    if (to_string(static_cast<Collective>(i)) == text) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

std::string collective_names() {
  std::string all;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i)
    all += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<Collective>(i)));
  return all;
}

std::string algorithm_names(Collective collective) {
  std::string all;
  for (const Algorithm algorithm : schedule::algorithms(collective))
    all += (all.empty() ? "" : ", ") + std::string(schedule::name(algorithm));
  return all;
}

Result<Algorithm> read_algorithm(const json& object, const Place& place, Collective collective) {
  return read_name<Algorithm>(object, "algorithm", place,
                              "for " + std::string(to_string(collective)) + " " + algorithm_names(collective),
                              [collective](const std::string& text) -> std::optional<Algorithm> {
                                const auto algorithm = algorithm_from_string(text);
                                const auto has = schedule::algorithms(collective);
                                if (!algorithm || std::ranges::find(has, *algorithm) == has.end()) return std::nullopt;
                                return algorithm;
                              });
}

Result<Path> read_path(const json& object, const Place& place, Collective collective) {
  const bool tree = in_network_capable(collective);
  return read_name<Path>(object, "path", place, tree ? "tree or ranks" : "ranks",
                         [tree](const std::string& text) -> std::optional<Path> {
                           const auto path = path_from_string(text);
                           return (path == Path::tree && !tree) || path == Path::split ? std::nullopt : path;
                         });
}

Result<Rule> read_rule(const json& object, const Place& place) {
  constexpr std::string_view keys[] = {"collective", "ranks", "bytes_max", "path", "algorithm"};
  if (!object.is_object()) return place.refuse(object, "an object");
  if (auto ok = only_keys(object, place, keys); !ok) return std::unexpected(ok.error());
  Rule rule;
  const auto collective =
      read_name<Collective>(object, "collective", place, collective_names(), collective_from_string);
  if (!collective) return std::unexpected(collective.error());
  rule.collective = *collective;
  const std::string ranks_allowed = "[LEAST, MOST], whole numbers from 1";
  const auto ranks = object.find("ranks");
  if (ranks == object.end()) return (place / "ranks").missing(ranks_allowed);
  const auto is_count = [](const json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 && value.get<std::uint64_t>() <= UINT32_MAX;
  };
  if (!ranks->is_array() || ranks->size() != 2 || !is_count((*ranks)[0]) || !is_count((*ranks)[1]) ||
      (*ranks)[0].get<std::uint32_t>() > (*ranks)[1].get<std::uint32_t>()) {
    return (place / "ranks").refuse(*ranks, ranks_allowed);
  }
  rule.ranks_min = (*ranks)[0].get<std::uint32_t>();
  rule.ranks_max = (*ranks)[1].get<std::uint32_t>();
  const auto bytes_max = object.find("bytes_max");
  const std::string bytes_allowed = "a whole number of bytes, or null for no limit";
  if (bytes_max == object.end()) return (place / "bytes_max").missing(bytes_allowed);
  if (!bytes_max->is_null() && !bytes_max->is_number_unsigned())
    return (place / "bytes_max").refuse(*bytes_max, bytes_allowed);
  rule.step.bytes_max = bytes_max->is_null() ? UINT64_MAX : bytes_max->get<std::uint64_t>();
  const auto path = read_path(object, place, rule.collective);
  if (!path) return std::unexpected(path.error());
  rule.step.path = *path;
  const auto algorithm = read_algorithm(object, place, rule.collective);
  if (!algorithm) return std::unexpected(algorithm.error());
  rule.step.algorithm = *algorithm;
  return rule;
}

Result<MeasuredTime> read_measured(const json& object, const Place& place) {
  constexpr std::string_view keys[] = {"collective", "ranks", "bytes", "path", "algorithm", "time_us"};
  if (!object.is_object()) return place.refuse(object, "an object");
  if (auto ok = only_keys(object, place, keys); !ok) return std::unexpected(ok.error());
  MeasuredTime time;
  const auto collective =
      read_name<Collective>(object, "collective", place, collective_names(), collective_from_string);
  if (!collective) return std::unexpected(collective.error());
  time.collective = *collective;
  const auto path = read_path(object, place, time.collective);
  if (!path) return std::unexpected(path.error());
  time.path = *path;
  const auto algorithm = read_algorithm(object, place, time.collective);
  if (!algorithm) return std::unexpected(algorithm.error());
  time.algorithm = *algorithm;
  for (const char* key : {"ranks", "bytes", "time_us"}) {
    if (!object.contains(key)) return (place / key).missing("a number");
    if (!object[key].is_number() || object[key].get<double>() < 0 ||
        (key[0] != 't' && !object[key].is_number_unsigned()))
      return (place / key).refuse(object[key], key[0] == 't' ? "a number from 0" : "a whole number from 0");
  }
  time.ranks = object["ranks"].get<std::uint32_t>();
  time.bytes = object["bytes"].get<std::uint64_t>();
  time.time_us = object["time_us"].get<double>();
  return time;
}

template <class Entry, class Read>
Status read_list(const json& root, const char* key, const Place& place, std::vector<Entry>& into, Read read) {
  const auto found = root.find(key);
  if (found == root.end()) return {};
  if (!found->is_array() || found->size() > kRulesMax)
    return (place / key).refuse(*found, "a list of at most " + std::to_string(kRulesMax));
  for (std::size_t i = 0; i < found->size(); ++i) {
    auto entry = read((*found)[i], (place / key)[i]);
    if (!entry) return std::unexpected(entry.error());
    into.push_back(std::move(*entry));
  }
  return {};
}

}  // namespace

const Rule* rule_for(const Table& table, const Call& call) noexcept {
  for (const Rule& rule : table.rules) {
    if (rule.collective == call.collective && call.ranks >= rule.ranks_min && call.ranks <= rule.ranks_max &&
        call.bytes <= rule.step.bytes_max) {
      return &rule;
    }
  }
  return nullptr;
}

std::optional<Path> path_from_string(std::string_view text) noexcept {
  for (std::uint8_t i = 0; i < kPathCount; ++i) {
    if (name(static_cast<Path>(i)) == text) return static_cast<Path>(i);
  }
  return std::nullopt;
}

std::optional<Algorithm> algorithm_from_string(std::string_view text) noexcept {
  for (std::uint8_t i = 0; i < schedule::kAlgorithmCount; ++i) {
    if (schedule::name(static_cast<Algorithm>(i)) == text) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

std::string to_text(const Table& table) {
  ordered_json figures = ordered_json::object();
  for (const FigureKey& figure : kFigures) {
    const double value = figure.get(table.figures);
    figures[figure.key] = figure.whole ? ordered_json(static_cast<std::uint64_t>(value)) : ordered_json(value);
  }
  // Write one line for each entry, because people read and change these files.
  std::string text = "{\n \"format\": \"" + std::string(kFormat) + "\",\n \"figures\": " + figures.dump() + ",\n";
  text += " \"rules\": [";
  for (std::size_t i = 0; i < table.rules.size(); ++i) {
    const Rule& rule = table.rules[i];
    ordered_json line = {{"collective", to_string(rule.collective)},
                         {"ranks", {rule.ranks_min, rule.ranks_max}},
                         {"bytes_max", nullptr},
                         {"path", name(rule.step.path)},
                         {"algorithm", schedule::name(rule.step.algorithm)}};
    if (rule.step.bytes_max != UINT64_MAX) line["bytes_max"] = rule.step.bytes_max;
    text += (i == 0 ? "\n  " : ",\n  ") + line.dump();
  }
  text += table.rules.empty() ? "],\n \"measured\": [" : "\n ],\n \"measured\": [";
  for (std::size_t i = 0; i < table.measured.size(); ++i) {
    const MeasuredTime& time = table.measured[i];
    const ordered_json line = {{"collective", to_string(time.collective)},
                               {"ranks", time.ranks},
                               {"bytes", time.bytes},
                               {"path", name(time.path)},
                               {"algorithm", schedule::name(time.algorithm)},
                               {"time_us", time.time_us}};
    text += (i == 0 ? "\n  " : ",\n  ") + line.dump();
  }
  return text + (table.measured.empty() ? "]\n}\n" : "\n ]\n}\n");
}

Result<Table> parse_table(const std::string& text, const std::string& where) {
  const Place place{where + ": "};
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    const std::size_t end = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    return service::refuse({.where = where + ":" + std::to_string(line),
                            .why = "this is no valid JSON",
                            .allowed = "a tuning table, as `tributary perf COLLECTIVE --tune FILE` makes it"});
  } catch (const json::out_of_range&) {  // the parser's error, which does not name the place
    return service::refuse({.where = where, .why = "it has a number that is too large for a double"});
  }
  constexpr std::string_view keys[] = {"format", "figures", "rules", "measured"};
  if (!root.is_object())
    return service::refuse({.where = where,
                            .why = "this is no tuning table",
                            .allowed = "one JSON object with the keys format, figures and rules"});
  if (auto ok = only_keys(root, place, keys); !ok) return std::unexpected(ok.error());
  const std::string format_allowed = "\"" + std::string(kFormat) + "\"";
  if (!root.contains("format")) return (place / "format").missing(format_allowed);
  if (root["format"] != kFormat) return (place / "format").refuse(root["format"], format_allowed);
  Table table;
  if (root.contains("figures")) {
    if (auto ok = read_figures(root["figures"], place / "figures", table.figures); !ok)
      return std::unexpected(ok.error());
  }
  if (auto ok = read_list(root, "rules", place, table.rules, read_rule); !ok) return std::unexpected(ok.error());
  if (auto ok = read_list(root, "measured", place, table.measured, read_measured); !ok)
    return std::unexpected(ok.error());
  return table;
}

Result<Table> read_table(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kFileBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || (!in && !in.eof())) {
    return service::refuse({.key = "tuning table",
                            .value = file,
                            .why = std::string("it cannot be read: ") + std::strerror(errno),
                            .allowed = "auto, model, off or the path of a file"});
  }
  if (text.size() > kFileBytesMax)
    return service::refuse({.where = file, .why = "the file is longer than 16 MiB, so it is no tuning table"});
  return parse_table(text, file);
}

}  // namespace tributary::tuning
