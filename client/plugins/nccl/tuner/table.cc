#include "client/plugins/nccl/tuner/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/settings.h"

namespace tributary::nccl {
namespace {

constexpr std::array<std::pair<std::string_view, abi::Function>, 5> kFunctions{{
    {"broadcast", abi::Function::broadcast},
    {"reduce", abi::Function::reduce},
    {"allgather", abi::Function::all_gather},
    {"reducescatter", abi::Function::reduce_scatter},
    {"allreduce", abi::Function::all_reduce},
}};

/// Reads a number with an optional unit K, M or G. Returns `open` for "-".
std::optional<std::size_t> to_number(std::string_view text, std::size_t open) {
  if (text == "-") return open;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit.empty()) return number;
  const auto shift = std::string_view("KMG").find(unit.front());
  if (unit.size() != 1 || shift == std::string_view::npos || number >= std::size_t{1} << 30) return std::nullopt;
  return number << 10 * (shift + 1);
}

std::optional<TunerRow> to_row(const std::vector<std::string>& words) {
  if (words.size() != 6) return std::nullopt;
  const auto function = std::ranges::find(kFunctions, words[0], &std::pair<std::string_view, abi::Function>::first);
  const auto bytes_min = to_number(words[1], 0), bytes_max = to_number(words[2], SIZE_MAX);
  const auto nodes_min = to_number(words[3], 2), nodes_max = to_number(words[4], SIZE_MAX);
  const bool known = words[5] == "collnet" || words[5] == "default";
  if (function == kFunctions.end() || !bytes_min || !bytes_max || !nodes_min || !nodes_max || !known)
    return std::nullopt;
  return TunerRow{function->second, *bytes_min, *bytes_max, *nodes_min, *nodes_max, words[5] == "collnet"};
}

std::optional<TunerTable> load() {
  if (settings().tuner_file.empty()) return std::nullopt;
  std::ifstream file(settings().tuner_file);
  auto table = file ? TunerTable::parse(file) : std::unexpected(std::string("the file cannot be opened"));
  if (table) return std::move(*table);
  warn("TRIBUTARY_NCCL_TUNER_FILE " + settings().tuner_file + ": " + table.error() + "; the cost model decides");
  return std::nullopt;
}

}  // namespace

const std::optional<TunerTable>& TunerTable::process() {
  static const std::optional<TunerTable> one = load();
  return one;
}

std::expected<TunerTable, std::string> TunerTable::parse(std::istream& text) {
  std::vector<TunerRow> rows;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    std::istringstream in(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) continue;
    const auto row = to_row(words);
    if (!row) {
      return std::unexpected("line " + std::to_string(number) +
                             " is not FUNCTION BYTES_MIN BYTES_MAX NODES_MIN NODES_MAX collnet|default");
    }
    rows.push_back(*row);
  }
  return TunerTable(std::move(rows));
}

bool TunerTable::prefers_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const noexcept {
  const auto row = std::ranges::find_if(rows_, [&](const TunerRow& one) {
    return one.function == function && bytes >= one.bytes_min && bytes <= one.bytes_max && nodes >= one.nodes_min &&
           nodes <= one.nodes_max;
  });
  return row != rows_.end() && row->collnet;
}

namespace {

constexpr float kNone = std::numeric_limits<float>::max();

bool is_collnet(int algorithm) {
  return algorithm == static_cast<int>(abi::Algorithm::collnet_direct) ||
         algorithm == static_cast<int>(abi::Algorithm::collnet_chain);
}

/// The least cost of each kind of algorithm; kNone: NCCL offers none of this kind.
struct Least {
  float collnet = kNone, other = kNone;
};
Least least_of(const float* costs, int algorithms, int protocols) {
  Least least;
  for (int i = 0; i < algorithms * protocols; ++i) {
    if (costs[i] < 0) continue;  // NCCL does not offer it
    float& best = is_collnet(i / protocols) ? least.collnet : least.other;
    best = std::min(best, costs[i]);
  }
  return least;
}

// Both kinds of CollNet keep their order, because NCCL knows which kind is better.
void scale_collnet(float* costs, int algorithms, int protocols, float factor) {
  for (int i = 0; i < algorithms * protocols; ++i) {
    if (is_collnet(i / protocols) && costs[i] >= 0) costs[i] *= factor;
  }
}

}  // namespace

void prefer_collnet(float* costs, int algorithms, int protocols) noexcept {
  const auto [collnet, other] = least_of(costs, algorithms, protocols);
  if (collnet == kNone || other == kNone || collnet < other) return;
  scale_collnet(costs, algorithms, protocols, collnet > 0 ? other / collnet / 2 : 0);
}

void avoid_collnet(float* costs, int algorithms, int protocols) noexcept {
  const auto [collnet, other] = least_of(costs, algorithms, protocols);
  if (collnet == kNone || other == kNone || collnet > other) return;
  constexpr float kLeast = 1e-6F;  // a cost of 0 could not be scaled
  for (int i = 0; i < algorithms * protocols; ++i) {
    if (is_collnet(i / protocols) && costs[i] >= 0) costs[i] = std::max(costs[i], kLeast);
  }
  scale_collnet(costs, algorithms, protocols, 2 * std::max(other, kLeast) / std::max(collnet, kLeast));
}

}  // namespace tributary::nccl
